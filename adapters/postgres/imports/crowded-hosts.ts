import type { Executor } from '../../../lib/transaction.ts';

/** So many rows below hosts make a short transaction also on the embedded database, where everybody waits for it. */
export const MOST = 500;

/** Rows below hosts, of which one host may have more than a slice takes. */
export interface Crowd {
    /** Where those of a host are, `from … where …`. */
    readonly rows: (host: string) => string;
    /**
     * Statements that do the work of the slices for those of the host `$1`, piece by piece. The first is given where the piece before has ended as `$2`, and says
     * the `count` of its rows and which was the `last`.
     */
    readonly thin: readonly string[];
    /** Says that nothing is left, where that does not show by itself. */
    readonly end?: string;
}

/**
 * The rows of a table below a host behind an id, as many as a slice takes. Those before are not read again: of what was deleted the index still has them. By their
 * order they are asked of the index of the host's rows, whatever the planner believes: for equality it may take the one of all ids.
 */
export function nextBelow(table: string, host: string, behind: string): string {
    return `next as materialized (
        select * from scanwire.${table} where (host_id, id) > (${host}, ${behind}) and host_id <= ${host} order by host_id, id limit ${MOST}
    )`;
}

/** The same of what only imports write, behind `$2` in its primary key, which has it by its hosts. */
export function nextKeys(table: string, key: string, host = 'host_id = $1'): string {
    return `next as materialized (
        select ctid, * from scanwire.${table} where ${host} and ${key} > $2 order by ${key} limit ${MOST}
    )`;
}

/** The ids of `next`, as a list: in a join the planner may read all rows of the host, or all there are, and look each up in `next`. */
export const OF_NEXT: string = ofNext();

/** The same of another column, or of those rows of which a condition holds. */
export function ofNext(key = 'id', condition = 'true'): string {
    return `any (array(select ${key} from next where ${condition}))`;
}

/** Whether a column of a table that is written has a value: the planner is given no order by which it could read all of the table. */
export function isIn(column: string, value: string): string {
    return `${column} = any (array[${value}])`;
}

/** The ids of those hosts of `slice` of which a condition holds, as a list for the same reason. */
export function hostsOfSlice(condition = 'true'): string {
    return `any (array(select host_id from slice where ${condition}))`;
}

/** What a piece of `next` has come to. */
export function endOf(key = 'id'): string {
    return `select max(${key}) as last, count(*)::integer as count from next`;
}

/** Rows that are only deleted, those of `next` that fulfil a condition. */
export function deleted(table: string, rows: Crowd['rows'], condition = 'true'): Crowd {
    return {
        rows,
        thin: [
            `with ${nextBelow(table, '$1', '$2')}, gone as (
                delete from scanwire.${table} rows where rows.id = ${OF_NEXT} and ${condition}
            ) ${endOf()}`,
        ],
    };
}

/** The workspace of a host, in conditions on tables whose key begins with it. */
export function workspaceOf(host: string): string {
    return `(select workspace_id from scanwire.hosts where id = ${host})`;
}

/** The generation that is shown of the workspace of a host. */
export function shownGeneration(host: string): string {
    return `(select greatest(generation, 0) from scanwire.workspaces where id = ${workspaceOf(host)})`;
}

/** Whether what is laid aside for a host fulfils a condition. */
export function isAside(host: string, condition: string): string {
    return `exists (select from scanwire.staged_hosts where workspace_id = ${workspaceOf(host)} and host_id = ${host} and ${condition})`;
}

/** Of what goes with the host `$1` nothing is told as deleted by itself: takes back what the deletion of a piece of a table has said, the last of what is said. */
export function forgetBuried(table: string): string {
    return `delete from scanwire.tombstones where ctid = any (array(
        select ctid from scanwire.tombstones where host_id = $1 and kind = '${table}' order by deleted_at desc, id desc limit ${MOST}
    ))`;
}

/** The same of what was deleted below the host before. */
export const BURIED: Crowd = {
    rows: (host) => `from scanwire.tombstones where host_id = ${host}`,
    thin: [
        `with next as materialized (
            select ctid, id from scanwire.tombstones where host_id = $1 and $2::integer is not null limit ${MOST}
        ), forgotten as (
            delete from scanwire.tombstones where ctid = any (array(select ctid from next))
        ) ${endOf()}`,
    ],
};

/** How many rows the hosts of a slice may have below them, none of which is crowded: pace is learnt only from what a slice has taken. */
export const MOST_OF_SLICE: number = 4 * MOST;

/** How many rows a host has below it, more or less: what an import has staged is not in its counts. */
export const ROWS_BELOW = 'service_count + note_count + vuln_count';

/**
 * Parts of a statement for a slice: `fitting`, the hosts up to the first one that is crowded, which is `crowd`; or up to those that have more below them
 * together than a slice takes.
 *
 * @param hosts Selects the ids of hosts that come next, as `id`, and how many rows each has `below` it.
 */
export function upToCrowd(hosts: string, crowds: readonly Crowd[]): string {
    const isCrowded = crowds.map(({ rows }) => `exists (select ${rows('candidate.id')} offset ${MOST})`).join(' or ');
    return `weighed as materialized (
        select id, row_number() over (order by id) as place, sum(below) over (order by id) as weight from (${hosts}) next_hosts
    ), candidates as materialized (
        select id, ${isCrowded} as crowded from weighed candidate where place = 1 or weight <= ${MOST_OF_SLICE}
    ), crowd as materialized (
        select min(id) as id from candidates where crowded
    ), fitting as materialized (
        select candidates.id from candidates, crowd where crowd.id is null or candidates.id < crowd.id
    )`;
}

/** Does the work for a piece of the rows below a crowded host. Resolves to where it has ended; null when it was the last. */
export async function thinned(client: Executor, host: number, { thin, end }: Crowd, behind: number): Promise<number | null> {
    const [first = '', ...others] = thin;
    const { rows } = await client.query<{ readonly last: number | null; readonly count: number }>(first, [host, behind]);
    const last = rows[0]?.count === MOST ? rows[0].last : null;
    for (const sql of last === null && end !== undefined ? [...others, end] : others) {
        await client.query(sql, [host]);
    }
    return last;
}
