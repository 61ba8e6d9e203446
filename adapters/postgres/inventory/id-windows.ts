import { MAX_ID } from '../../../lib/inventory/fields.ts';
import type { Selection } from '../../../lib/inventory/selection.ts';
import type { Reader } from '../left-statements.ts';
import { prepared } from '../prepared.ts';
import type { CollectionSource } from './collection.ts';
import type { ReadInRanges } from './search-ranges.ts';

/**
 * How many ids a statement walks along at most, and below how many hosts it looks for rows: PostgreSQL does either in about a hundredth of a second. On the
 * embedded database everybody waits meanwhile.
 */
const SIZES = { alone: 10_000, shared: 2_500 } as const;

/**
 * What is below all hosts of a workspace lies between the rows of other workspaces: behind the last row of a workspace a statement without an end would walk
 * along all of theirs. So each has a window of ids. Behind a window with fewer rows than are wanted it is looked up below the hosts of the workspace
 * where the next row is, if there is one.
 */
export interface IdWindows {
    /** The last id of the window behind an id; both are expressions. */
    endOf(after: string): string;
    /** The windows of one listing; null where rows are found below some hosts. */
    of(path: readonly number[], selection: Selection): Listed | null;
}

interface Listed extends ReadInRanges {
    /** The id behind which it goes on where the window behind another had too few rows; null at the end. */
    next(reader: Reader, after: number, signal?: AbortSignal): Promise<number | null>;
}

/** The windows in which rows are listed; null where an index leads from one to the next. */
export function idWindows({ table, byHost, hasBlocks }: CollectionSource, inRanges: boolean): IdWindows | null {
    if (byHost !== true || hasBlocks !== true) {
        return null;
    }

    const size = inRanges ? SIZES.shared : SIZES.alone;
    const following = prepared(nextIn(table));
    const endOf = (after: number): number => Math.min(after + size, MAX_ID);

    function of(path: readonly number[], { hosts }: Selection): Listed | null {
        if (hosts !== undefined) {
            return null;
        }

        let walked = 0;

        async function next(reader: Reader, after: number, signal?: AbortSignal): Promise<number | null> {
            walked += 1;
            const behind = endOf(after);
            const { rows } = await reader.query<{ id: number | null }>(following, [...path, behind, mostHosts(walked)], signal);
            const id = rows[0]?.id ?? null;
            return id === null ? null : id - 1;
        }

        return {
            next,

            async read(reader, part, read, signal) {
                const { limit = Number.POSITIVE_INFINITY } = part;
                let found: Awaited<ReturnType<typeof read>> = [];
                for (let after: number | null = part.after?.id ?? 0; after !== null; ) {
                    const window = { after: { id: after }, until: { id: endOf(after) } };
                    found = [...found, ...(await read({ ...part, ...window, limit: limit - found.length }))];
                    after = found.length < limit ? await next(reader, after, signal) : null;
                }
                return found;
            },
        };
    }

    /** Below more hosts than a window has ids it is looked only where as many ids were walked along, and seldom: then all of it takes twice as long as the shorter way. */
    function mostHosts(walked: number): number {
        const isDue = !inRanges && (walked & (walked - 1)) === 0;
        return size * (isDue ? walked : 1);
    }

    return { endOf: (after) => `${after}::bigint + ${size}`, of };
}

/** The next row of a workspace with few hosts, of any workspace else; none behind the last row of the table. */
function nextIn(table: string): string {
    return `select case when counted.hosts <= $3::bigint then (
                select min(firsts.id) from scanwire.hosts cross join lateral (
                    select rows.id from ${table} rows where rows.host_id = hosts.id and rows.id > $2::integer order by rows.id limit 1
                ) firsts where hosts.workspace_id = $1
            ) else (select rows.id from ${table} rows where rows.id > $2::integer order by rows.id limit 1) end as id
        from (select count(*) as hosts from (
            select from scanwire.hosts where workspace_id = $1 limit $3::bigint + 1
        ) enough) counted
        where (select max(rows.id) from ${table} rows) > $2::integer`;
}
