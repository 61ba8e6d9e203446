import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../../lib/clock.ts';
import { type Findings, placed } from '../../../lib/inventory/findings.ts';
import type { ImportCounts } from '../../../lib/inventory/import-counts.ts';
import { count, existing, FINDING_COUNTS, type InventoryTables, type Row, serviceKey, type Table, times } from './inventory-tables.ts';

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
export function storeFindings(
    tables: InventoryTables,
    hostId: number,
    { name, given = [], clock }: { readonly name: keyof Findings; readonly given: readonly Given[] | undefined; readonly clock: Clock },
): readonly StoredFinding[] {
    const { hosts, services, imported } = tables;
    const table = tables[name] as unknown as Table<FindingRow>;
    const keyOf = ({ ntype, name: title }: Pick<FindingRow, 'ntype' | 'name'>): string | null => ntype ?? title ?? null;

    return placed(given, keyOf).map(([{ port, proto = 'tcp', ...fields }, place]): StoredFinding => {
        const service_id = port === undefined ? null : existing(services.find(hostId, serviceKey({ port, proto })), 'service').id;
        const alike = table
            .idsBelow(hostId)
            .filter((id) => imported[name].has(id))
            .flatMap((id) => table.get(id) ?? [])
            .filter((row) => row.service_id === service_id && keyOf(row) === keyOf(fields));
        const known = alike[place];
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
