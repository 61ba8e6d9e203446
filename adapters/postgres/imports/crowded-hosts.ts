import type { Executor } from '../../../lib/transaction.ts';

/** So many rows below one host make a short transaction also on the embedded database, where everybody waits for it. */
export const MOST = 500;

/** Rows below hosts, of which one host may have more than a slice takes. */
export interface Crowd {
    /** Where those of a host are, `from … where …`. */
    readonly rows: (host: string) => string;
    /** Statements that do the work of the slices for {@link some} of those of the host `$1`. */
    readonly thin: readonly string[];
}

/**
 * As many rows of the host `$1` as a slice takes, as an array, as long as there are more: the last ones are left to the slice of their host. A join
 * would read all of them for each.
 */
export function some(column: string, rows: Crowd['rows']): string {
    return `array(select ${column} ${rows('$1')} and exists (select ${rows('$1')} offset ${MOST}) order by ${column} limit ${MOST})`;
}

/** Rows that are only deleted. */
export function deleted(table: string, column: string, condition: (host: string) => string): Crowd {
    const rows = (host: string): string => `from scanwire.${table} where ${condition(host)}`;
    return { rows, thin: [`delete from scanwire.${table} where ${column} = any (${some(column, rows)})`] };
}

/** The workspace of a host, in conditions on tables whose key begins with it. */
export function workspaceOf(host: string): string {
    return `(select workspace_id from scanwire.hosts where id = ${host})`;
}

/** The generation that is shown of the workspace of a host. */
export function shownGeneration(host: string): string {
    return `(select greatest(generation, 0) from scanwire.workspaces where id = ${workspaceOf(host)})`;
}

/** Of what goes with the host `$1` nothing is told as deleted by itself. */
export const FORGET_BURIED: string = `delete from scanwire.tombstones where host_id = $1 and exists (
    select from scanwire.staged_hosts where workspace_id = ${workspaceOf('$1')} and host_id = $1 and removed
)`;

/**
 * Parts of a statement for a slice: `fitting`, the hosts up to the first one that is crowded, which is `crowd`.
 *
 * @param hosts Selects the ids of hosts that come next, as `id`.
 */
export function upToCrowd(hosts: string, crowds: readonly Crowd[]): string {
    const isCrowded = crowds.map(({ rows }) => `exists (select ${rows('candidate.id')} offset ${MOST})`).join(' or ');
    return `candidates as materialized (
        select id, ${isCrowded} as crowded from (${hosts}) candidate
    ), crowd as materialized (
        select min(id) as id from candidates where crowded
    ), fitting as materialized (
        select candidates.id from candidates, crowd where crowd.id is null or candidates.id < crowd.id
    )`;
}

/** Does the work for some of the rows below a crowded host. Resolves to whether there were any. */
export async function thinned(client: Executor, host: number, { thin }: Crowd): Promise<boolean> {
    let count = 0;
    for (const sql of thin) {
        count += (await client.query(sql, [host])).rowCount ?? 0;
    }
    return count > 0;
}
