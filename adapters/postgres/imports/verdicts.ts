import type { ImportCounts } from '../../../lib/inventory/import-counts.ts';
import { isIn } from './crowded-hosts.ts';

/** What was there and is told to be there no more is gone. */
export function verdict(row: { readonly isNew: string; readonly differs: string; readonly gone: string }): string {
    return `case when ${row.isNew} then 'new' when not (${row.differs}) then 'unchanged' when ${row.gone} then 'gone' else 'changed' end as verdict`;
}

/** How many rows came to each verdict; what is refused is not in the database. */
export type Counted = Omit<ImportCounts, 'refused'>;

/** How many rows of `judged` came to each verdict. */
export const COUNTED: string = ['new', 'changed', 'unchanged', 'gone']
    .map((name) => `(count(*) filter (where verdict = '${name}'))::integer as "${name}"`)
    .join(', ');

/**
 * Parts of a statement that has `judged` what is below hosts, which are told what they have more of: those that are shown aside. Hosts from
 * `$8` on are new, and have their number of each. Every host that is shown and has something staged is in `staged_hosts`, by which it is
 * found; it has changed itself where it has more.
 *
 * @param kind `service`, `note` or `vuln`.
 * @param isFinding Whether it is among what is told there as `findings`.
 */
export function noteTouched(kind: string, isFinding: boolean): string {
    const added = `${kind}s_added`;
    return `touched as materialized (
    select host_id, host_generation, host_updated_at, (count(*) filter (where verdict = 'new'))::integer as added
    from judged where verdict <> 'unchanged' and host_id < $8 group by host_id, host_generation, host_updated_at
), counted as (
    update scanwire.hosts set ${kind}_count = ${kind}_count + added from touched where ${isIn('hosts.id', 'host_id')} and host_generation = $5 and added > 0
), noted as (
    insert into scanwire.staged_hosts as staged (workspace_id, host_id, updated_at, fields, ${added}, findings)
    select $3, host_id, case when added > 0 then $7 else host_updated_at end, '{}', added, ${isFinding} from touched where host_generation < $5
    on conflict (workspace_id, host_id) do update set ${added} = staged.${added} + excluded.${added},
        findings = staged.findings or excluded.findings,
        updated_at = case when excluded.${added} > 0 then excluded.updated_at else staged.updated_at end
)`;
}
