import { inClosedPorts } from '../../../lib/inventory/closed-ports.ts';
import type { HostInput } from '../../../lib/inventory/host.ts';
import { type ImportCounts, importCounts } from '../../../lib/inventory/import-counts.ts';
import type { Service } from '../../../lib/inventory/resources.ts';
import type { StoredFinding } from './import-hosts.ts';
import { existing, FINDING_COUNTS, type InventoryTables, removeHost, serviceKey } from './inventory-tables.ts';
import { ROOT } from './table.ts';

const FINDINGS = ['notes', 'vulns'] as const;
type FindingName = (typeof FINDINGS)[number];

/** An import that replaces. */
interface Replacement {
    readonly inputs: readonly HostInput[];
    /** Addresses of the hosts that it has made or changed. */
    readonly changed: ReadonlySet<string>;
    readonly named: Readonly<Record<FindingName, readonly StoredFinding[]>>;
    readonly at: Date;
}

/** What was removed; a host of which only something below it was counts as changed. */
export type Gone = Readonly<Record<'hosts' | 'services' | FindingName, ImportCounts>>;

/** Before anything is removed. */
export const NOTHING_GONE: Gone = { hosts: importCounts(), services: importCounts(), notes: importCounts(), vulns: importCounts() };

/** Removes what an import does not name of a workspace. */
export function removeUnnamed(tables: InventoryTables, workspaceId: number, { inputs, changed, named, at }: Replacement): Gone {
    const { hosts, services } = tables;
    const byAddress = new Map<string, HostInput[]>();
    for (const input of inputs) {
        const ofAddress = byAddress.get(input.address) ?? [];
        ofAddress.push(input);
        byAddress.set(input.address, ofAddress);
    }

    const kept = { notes: idsOf(named.notes), vulns: idsOf(named.vulns) };
    const gone = { hosts: 0, services: 0, notes: 0, vulns: 0, shrunk: 0 };
    for (const id of hosts.idsBelow(workspaceId)) {
        const { address } = existing(hosts.get(id), 'host');
        const inputsOfHost = byAddress.get(address);
        const isNamed = naming(inputsOfHost ?? []);
        const lost = services.idsBelow(id).filter((service) => !isNamed(existing(services.get(service), 'service')));
        const found = FINDINGS.flatMap((name) => unnamedFindings(tables, name, id, { lost, kept: inputsOfHost && kept[name] }));
        gone.services += lost.length;
        for (const { name } of found) {
            gone[name] += 1;
        }

        if (inputsOfHost === undefined) {
            gone.hosts += 1;
            removeHost(tables, id);
            continue;
        }

        gone.shrunk += lost.length + found.length > 0 && !changed.has(address) ? 1 : 0;
        for (const { name, finding } of found) {
            removeFinding(tables, name, finding, at);
        }
        for (const service of lost) {
            removeService(tables, service, at);
        }
    }

    const { hosts: removed, shrunk } = gone;
    return {
        hosts: importCounts({ gone: removed, changed: shrunk, unchanged: -shrunk }),
        services: importCounts({ gone: gone.services }),
        notes: importCounts({ gone: gone.notes }),
        vulns: importCounts({ gone: gone.vulns }),
    };
}

/** Of a host that stays those that an import has made and this one does not `keep`, and those of services that are lost; else all. */
function unnamedFindings(
    tables: InventoryTables,
    name: FindingName,
    host: number,
    { lost, kept }: { readonly lost: readonly number[]; readonly kept: ReadonlySet<number> | undefined },
): readonly { readonly name: FindingName; readonly finding: number }[] {
    return tables[name]
        .idsBelow(host)
        .filter((id) => {
            const service = tables[name].get(id)?.service_id ?? null;
            return kept === undefined || (service !== null && lost.includes(service)) || (tables.imported[name].has(id) && !kept.has(id));
        })
        .map((finding) => ({ name, finding }));
}

function idsOf(findings: readonly StoredFinding[]): ReadonlySet<number> {
    return new Set(findings.map(({ id }) => id));
}

/** The question whether one of these, a host as an import tells it, says something of a service, to be asked of many services. */
function naming(inputs: readonly HostInput[]): (service: Service) => boolean {
    const told = new Set(inputs.flatMap(({ services = [] }) => services.map(serviceKey)));
    const wereClosed = inClosedPorts(inputs.map(({ closed_ports = {} }) => closed_ports));
    return (service) => told.has(serviceKey(service)) || wereClosed(service);
}

/** Removes a service below which nothing is any more, and counts its host again. */
function removeService({ hosts, services, tombstones }: InventoryTables, id: number, at: Date): void {
    const { host_id } = existing(services.get(id), 'service');
    const host = existing(hosts.get(host_id), 'host');
    hosts.replace({ ...host, updated_at: at, service_count: host.service_count - 1 });
    services.remove(id);
    tombstones.bury('services', id, [host.workspace_id, host_id]);
}

/** Removes a note or a vulnerability, and counts its host again. */
function removeFinding(tables: InventoryTables, name: 'notes' | 'vulns', id: number, at: Date): void {
    const host = existing(tables.hosts.get(tables[name].parentOf(id) ?? ROOT), 'host');
    const counter = FINDING_COUNTS[name];
    tables.hosts.replace({ ...host, updated_at: at, [counter]: host[counter] - 1 });
    const path = [host.workspace_id, host.id, tables[name].get(id)?.service_id ?? ROOT];
    tables.tombstones.bury(name, id, path);
    tables[name].remove(id);
}
