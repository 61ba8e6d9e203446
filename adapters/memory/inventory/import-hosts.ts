import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../../lib/clock.ts';
import { withinBoundary } from '../../../lib/inventory/boundary.ts';
import { inClosedPorts } from '../../../lib/inventory/closed-ports.ts';
import { type Findings, indexedAmongAlike } from '../../../lib/inventory/findings.ts';
import { type Host, type HostInput, hostFields, newHost, type ServiceInput } from '../../../lib/inventory/host.ts';
import { addCounts, anyRefused, countsAgain, type ImportCounts, importCounts, withRefused } from '../../../lib/inventory/import-counts.ts';
import { merging } from '../../../lib/inventory/mentions.ts';
import { refuseUnstorableHosts, refuseUnstorableName, type Workspace } from '../../../lib/inventory/resources.ts';
import type { ImportSummary, InventoryWriter } from '../../../lib/inventory/store.ts';
import { processWarning } from '../../../lib/process-warning.ts';
import type { Endpoint } from '../../../lib/records/endpoints.ts';
import { count, existing, FINDING_COUNTS, type InventoryTables, saveTables, serviceKey, times } from './inventory-tables.ts';
import { rememberedImports } from './remembered-imports.ts';
import { type Gone, NOTHING_GONE, removeUnnamed } from './remove-unnamed.ts';
import { ROOT, type Row, type Table } from './table.ts';

/** What this store offers to those who import. */
export interface InventoryImport
    extends Required<
        Omit<InventoryWriter, 'expireHosts' | 'removeHosts' | 'removeWorkspace' | 'moveHosts' | 'updateWorkspace' | 'renameWorkspace'>
    > {
    /**
     * Puts endpoints into the workspace of that name as `RecordStore.add` says, and fails as it does; at once, so that `memoryRecords` need not wait.
     *
     * @returns The addresses that it has left out.
     */
    addEndpoints(workspaceName: string, endpoints: readonly Endpoint[]): ReadonlySet<string>;
}

/** Stores rows one by one. */
function rowWriter(tables: InventoryTables, clock: Clock) {
    const { workspaces, hosts, services, sightings } = tables;
    function storeWorkspace(name: string): Workspace {
        refuseUnstorableName(name);
        const blank = { boundary: null, description: null, owner_id: null, limit_to_network: false };
        return workspaces.find(ROOT, name) ?? workspaces.insert(ROOT, (id) => ({ id, name, ...blank, ...times(clock()) }), name);
    }

    function storeHost(workspace_id: number, input: HostInput): Host {
        const known = hosts.find(workspace_id, input.address);
        return known === undefined
            ? hosts.insert(workspace_id, (id) => ({ ...newHost(input), id, workspace_id, ...times(clock()) }), input.address)
            : hosts.replace({ ...known, ...hostFields(input), updated_at: clock() });
    }

    function storeService(host_id: number, input: ServiceInput): void {
        const known = services.find(host_id, serviceKey(input));
        if (known === undefined) {
            services.insert(host_id, (id) => ({ name: '', info: null, ...input, id, host_id, ...times(clock()) }), serviceKey(input));
            count(hosts, host_id, 'service_count');
        } else {
            services.replace({ ...known, ...input, updated_at: clock() });
        }
    }

    function importService(host_id: number, { guessed_name, ...given }: ServiceInput): Verdict {
        const known = services.find(host_id, serviceKey(given));
        const isNamed = given.name !== undefined || (known?.name ?? '') !== '';
        const input = isNamed || guessed_name === undefined ? given : { ...given, name: guessed_name };
        const verdict = verdictOn(known, input, 'closed');
        if (verdict !== 'unchanged') {
            storeService(host_id, input);
        }
        return verdict;
    }

    function importHost(workspaceId: number, input: HostInput): ImportedHost {
        const known = hosts.find(workspaceId, input.address);
        if (known === undefined && input.if_known) {
            return { services: [], notes: [], vulns: [] };
        }

        const verdict = verdictOn(known, hostFields(input), 'down');
        const host = known === undefined || verdict !== 'unchanged' ? storeHost(workspaceId, input) : known;
        if (input.state !== 'down') {
            // One time for both: an import never sees a host later than it writes it.
            sightings.set(host.id, host === known ? clock() : host.updated_at);
        } else if (known === undefined) {
            sightings.set(host.id, null);
        }

        const given = [...(input.services ?? []), ...closedServices(services, host.id, input)];
        const found = given.map((service) => importService(host.id, service));
        const notes = storeFindings(tables, host.id, { name: 'notes', given: input.notes, clock });
        const vulns = storeFindings(tables, host.id, { name: 'vulns', given: input.vulns, clock });
        if (verdict === 'unchanged' && [...found, ...verdictsOf([...notes, ...vulns])].includes('new')) {
            storeHost(workspaceId, input);
            return { host: 'changed', services: found, notes, vulns };
        }

        return { host: verdict, services: found, notes, vulns };
    }

    return { storeWorkspace, storeHost, storeService, importHost };
}

/** The import into the tables. */
export function inventoryImport(tables: InventoryTables, clock: Clock): InventoryImport {
    const { workspaces, hosts, services, sightings } = tables;
    const { storeWorkspace, storeHost, storeService, importHost } = rowWriter(tables, clock);
    const memory = rememberedImports(tables);

    function seenOf(workspaceId: number, inputs: readonly HostInput[]): readonly number[] {
        const seen = inputs.filter(({ state }) => state !== 'down');
        return seen.flatMap(({ address }) => hosts.find(workspaceId, address)?.id ?? []);
    }

    /** Of hosts that are there still, and were not seen by others meanwhile. */
    function seeAgain(ids: readonly number[], at: Date): void {
        for (const id of ids) {
            if (hosts.get(id) !== undefined && (sightings.get(id) ?? at) <= at) {
                sightings.set(id, at);
            }
        }
    }

    function storeEndpoint(workspaceId: number, { address, port, name, isNew }: Endpoint): void {
        const known = hosts.find(workspaceId, address);
        const input = { address, ...(known === undefined && name !== null && { name }) };
        const host = known === undefined || isNew ? storeHost(workspaceId, input) : known;
        if (isNew && sightings.has(host.id)) {
            sightings.set(host.id, host.updated_at);
        }

        const service = services.find(host.id, serviceKey({ port, proto: 'tcp' }));
        if (service === undefined || isNew) {
            storeService(host.id, { port, proto: 'tcp', state: 'open', name: 'https', info: service?.info ?? null });
        }
    }

    return {
        replaces: true,
        keepsFindings: true,
        dryRuns: true,
        keepsBoundaries: true,
        remembersImports: true,

        async ensureWorkspace(name) {
            return storeWorkspace(name);
        },

        async importHosts(workspaceName, inputs, { replace = false, dryRun = false, onWarning = processWarning, origin } = {}) {
            const found = workspaces.find(ROOT, workspaceName);
            const known = memory.recall({ workspace: found, origin: origin?.id, replace });
            if (found !== undefined && known !== undefined) {
                const at = clock();
                await origin?.arrived();
                seeAgain(dryRun ? [] : known.hosts, at);
                return { workspace: found, ...known.counts };
            }

            const complete: HostInput[] = [];
            for await (const input of inputs) {
                refuseUnstorableHosts([input]);
                complete.push(input);
            }

            // From here on nothing waits, and nothing fails but for a boundary that is none: all or nothing.
            const restore = dryRun ? saveTables(tables) : () => {};
            const within = withinBoundary(workspaces.find(ROOT, workspaceName));
            const workspace = storeWorkspace(workspaceName);
            const mentions = merging();
            const inside = byAddress(complete.filter(within.letsIn)).map(mentions.merged);
            const imported = inside.map((input) => ({ address: input.address, ...importHost(workspace.id, input) }));
            const changed = new Set(imported.flatMap(({ address, host }) => (host === 'unchanged' ? [] : address)));
            const named = { notes: imported.flatMap(({ notes }) => notes), vulns: imported.flatMap(({ vulns }) => vulns) };
            const gone = replace ? removeUnnamed(tables, workspace.id, { inputs: inside, changed, named, at: clock() }) : NOTHING_GONE;
            const refused = withRefused(within.refused(), mentions.refused());
            const again = countsAgain(countsOf(imported, NOTHING_GONE));
            restore();
            if (origin !== undefined && !dryRun && again !== null && !anyRefused(refused) && origin.hasWarned?.() !== true) {
                memory.remember({ workspace, origin: origin.id, replace }, { counts: again, hosts: seenOf(workspace.id, inside) });
            }

            mentions.warn(onWarning);
            return { workspace, ...withRefused(countsOf(imported, gone), refused) };
        },

        addEndpoints(workspaceName, endpoints) {
            const within = withinBoundary(workspaces.find(ROOT, workspaceName));
            const { id } = storeWorkspace(workspaceName);
            const leftOut = new Set<string>();
            for (const endpoint of endpoints) {
                const { address } = endpoint;
                within.letsIn({ address }) ? storeEndpoint(id, endpoint) : leftOut.add(address);
            }
            return leftOut;
        },
    };
}

/** What is said of each address. */
function byAddress(inputs: readonly HostInput[]): readonly (readonly HostInput[])[] {
    const mentions = new Map<string, HostInput[]>();
    for (const input of inputs) {
        const before = mentions.get(input.address);
        before === undefined ? mentions.set(input.address, [input]) : before.push(input);
    }
    return [...mentions.values()];
}

/** The services that are open and were seen closed with others. */
function closedServices(
    services: InventoryTables['services'],
    hostId: number,
    { services: told = [], closed_ports = {} }: HostInput,
): readonly ServiceInput[] {
    const keys = new Set(told.map(serviceKey));
    const wereClosed = inClosedPorts([closed_ports]);
    return services.idsBelow(hostId).flatMap((id) => {
        const { port, proto, state, name, info } = existing(services.get(id), 'service');
        const isClosed = state !== 'closed' && wereClosed({ port, proto }) && !keys.has(serviceKey({ port, proto }));
        return isClosed ? [{ port, proto, state: 'closed', name, info } as const] : [];
    });
}

type Verdict = keyof ImportCounts;

interface ImportedHost {
    /** None of one that is told to those alone who know it. */
    readonly host?: Verdict;
    readonly services: readonly Verdict[];
    readonly notes: readonly StoredFinding[];
    readonly vulns: readonly StoredFinding[];
}

function countsOf(imported: readonly ImportedHost[], gone: Gone): Omit<Required<ImportSummary>, 'workspace'> {
    return {
        hosts: addCounts(counted(imported.flatMap(({ host = [] }) => host)), gone.hosts),
        services: addCounts(counted(imported.flatMap(({ services }) => services)), gone.services),
        notes: addCounts(counted(imported.flatMap(({ notes }) => verdictsOf(notes))), gone.notes),
        vulns: addCounts(counted(imported.flatMap(({ vulns }) => verdictsOf(vulns))), gone.vulns),
    };
}

function verdictsOf(findings: readonly StoredFinding[]): readonly Verdict[] {
    return findings.map(({ verdict }) => verdict);
}

/** What becomes of a row by the fields that are given; `gone` is the state of one that is there no more. */
function verdictOn(
    known: { readonly state: string } | undefined,
    given: Readonly<Partial<Record<string, unknown>>>,
    gone: string,
): Verdict {
    if (known === undefined) {
        return 'new';
    }

    const shown: Readonly<Record<string, unknown>> = known;
    if (Object.entries(given).every(([field, value]) => shown[field] === value)) {
        return 'unchanged';
    }

    return given.state === gone && known.state !== gone ? 'gone' : 'changed';
}

function counted(verdicts: readonly Verdict[]): ImportCounts {
    const counts = { ...importCounts() };
    for (const verdict of verdicts) {
        counts[verdict] += 1;
    }
    return counts;
}

/** What a finding is as long as nothing more is known. */
export const BLANK_FINDINGS = {
    notes: { service_id: null, ntype: null, data: {}, critical: null, seen: null },
    vulns: { info: null, exploited_at: null, vuln_detail_count: 0, vuln_attempt_count: 0, nexpose_data_vuln_def_id: null },
} as const;

/** A note or a vulnerability that an import names, and what has become of it. */
export interface StoredFinding {
    readonly id: number;
    readonly verdict: Extract<keyof ImportCounts, 'new' | 'changed' | 'unchanged'>;
}

type FindingRow = Row & { readonly service_id: number | null; readonly ntype?: string | null; readonly name?: string };
type Given = NonNullable<Findings[keyof Findings]>[number] & Pick<FindingRow, 'ntype' | 'name'>;

/** Stores the notes, or the vulnerabilities, that an import gives a host. Those that others have added it leaves alone. */
function storeFindings(
    tables: InventoryTables,
    hostId: number,
    { name, given = [], clock }: { readonly name: keyof Findings; readonly given: readonly Given[] | undefined; readonly clock: Clock },
): readonly StoredFinding[] {
    const { hosts, services, imported } = tables;
    const table = tables[name] as unknown as Table<FindingRow>;
    const keyOf = ({ ntype, name: title }: Pick<FindingRow, 'ntype' | 'name'>): string | null => ntype ?? title ?? null;

    return indexedAmongAlike(given, keyOf).map(([{ port, proto = 'tcp', ...fields }, index]): StoredFinding => {
        const service_id = port === undefined ? null : existing(services.find(hostId, serviceKey({ port, proto })), 'service').id;
        const alike = table
            .idsBelow(hostId)
            .filter((id) => imported[name].has(id))
            .flatMap((id) => table.get(id) ?? [])
            .filter((row) => row.service_id === service_id && keyOf(row) === keyOf(fields));
        const known = alike[index];
        if (known === undefined) {
            const { workspace_id } = existing(hosts.get(hostId), 'host');
            const above = { ...(name === 'notes' && { workspace_id }), host_id: hostId, service_id };
            const made = table.insert(hostId, (id) => ({ ...BLANK_FINDINGS[name], ...times(clock()), ...fields, ...above, id }));
            imported[name].add(made.id);
            count(hosts, hostId, FINDING_COUNTS[name]);
            return { id: made.id, verdict: 'new' };
        }

        if (isDeepStrictEqual({ ...known, ...fields }, known)) {
            return { id: known.id, verdict: 'unchanged' };
        }

        table.replace({ ...known, ...fields, ...{ updated_at: clock() } });
        return { id: known.id, verdict: 'changed' };
    });
}
