import { holdPort } from '../../lib/inventory/closed-ports.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import { type ImportCounts, importCounts } from '../../lib/inventory/import-counts.ts';
import type { Service } from '../../lib/inventory/resources.ts';
import { existing, type InventoryTables, removeHost, removeService } from './tables.ts';

/** An import that replaces. */
interface Replacement {
    readonly inputs: readonly HostInput[];
    /** Addresses of the hosts that it has made or changed. */
    readonly changed: ReadonlySet<string>;
    readonly at: Date;
}

/** What was removed; a host of which only services were counts as changed. */
type Gone = Readonly<Record<'hosts' | 'services', ImportCounts>>;

/** Before anything is removed. */
export const NOTHING_GONE: Gone = { hosts: importCounts(), services: importCounts() };

/** Removes what an import does not name of a workspace. */
export function removeUnnamed(tables: InventoryTables, workspaceId: number, { inputs, changed, at }: Replacement): Gone {
    const { hosts, services } = tables;
    const byAddress = new Map<string, HostInput[]>();
    for (const input of inputs) {
        byAddress.set(input.address, [...(byAddress.get(input.address) ?? []), input]);
    }

    const gone = { hosts: 0, services: 0, shrunk: 0 };
    for (const id of hosts.idsBelow(workspaceId)) {
        const { address } = existing(hosts.get(id), 'host');
        const named = byAddress.get(address);
        const lost = services
            .idsBelow(id)
            .filter((service) => !named?.some((input) => names(input, existing(services.get(service), 'service'))));
        gone.services += lost.length;
        if (named === undefined) {
            gone.hosts += 1;
            removeHost(tables, id);
            continue;
        }

        gone.shrunk += lost.length > 0 && !changed.has(address) ? 1 : 0;
        for (const service of lost) {
            removeService(tables, service, at);
        }
    }

    const { hosts: removed, services: lost, shrunk } = gone;
    return {
        hosts: importCounts({ gone: removed, changed: shrunk, unchanged: -shrunk }),
        services: importCounts({ gone: lost }),
    };
}

/** Whether a host of an import says something of a service. */
function names({ services = [], closed_ports = {} }: HostInput, { port, proto }: Service): boolean {
    return services.some((told) => told.port === port && told.proto === proto) || holdPort(closed_ports[proto] ?? [], port);
}
