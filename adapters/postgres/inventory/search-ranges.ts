import { MAX_ID } from '../../../lib/inventory/fields.ts';
import type { Position, Selection } from '../../../lib/inventory/selection.ts';
import type { Reader } from '../left-statements.ts';
import { paceOf } from '../pace.ts';
import type { CollectionSource } from './collection.ts';
import { areFew } from './hosts-by-address.ts';
import { beginning, ending, type IdRange, type Part, type Statement } from './selecting.ts';

/**
 * How many rows a search looks through at once, and how many milliseconds that should take: on the embedded database everybody waits meanwhile. It
 * begins with as many as it takes when their pages have not been read since the database was opened.
 */
const RANGE = { max: MAX_ID, first: 1_000, min: 250, takes: 40 } as const;

/** The rows of a range of ids, how many milliseconds it took to count them, and the first id behind it that there is. */
export interface Counted {
    readonly count: number;
    readonly took: number;
    readonly next: number | null;
}

/** What is read range by range, each by a statement of its own. */
export interface ReadInRanges {
    /**
     * Reads as many rows as the part wants.
     *
     * @param read Reads those of a range, of which it says the end.
     */
    read<Row extends Position>(
        reader: Reader,
        part: Part,
        read: (part: Part) => Promise<readonly Row[]>,
        signal?: AbortSignal,
    ): Promise<readonly Row[]>;
}

/** A search that looks through the rows so, and gives way to others between two statements. */
export interface Ranges extends ReadInRanges {
    /** @param count Counts those of a range. */
    count(count: (range: IdRange) => Promise<Counted>): Promise<number>;
    /** Does work for every range. */
    each(reader: Reader, work: (part: Part) => Promise<void>, signal?: AbortSignal): Promise<void>;
}

/** What came of a range. */
interface Ranged {
    /** Whether no more rows are wanted. */
    readonly enough: boolean;
    readonly took?: number;
    readonly next?: number | null;
}

/** Where there was enough, not all of the range was looked through. A time of the database's own has nothing of others in it, and is believed further. */
function mostTimesAsMany({ enough, took }: Ranged): number {
    return enough ? 1 / 2 : took === undefined ? 2 : 4;
}

type Work = (part: Part) => Promise<Ranged>;
/** The first id behind a place that there is. */
type Next = (behind: Pick<Position, 'id'>) => Promise<number | null>;

/** The ranges of a selection; null where it is read at once: few hosts that are found by their addresses, and rows whose order no index has. */
export function rangesOf(source: CollectionSource, path: readonly number[], selection: Selection): Ranges | null {
    const { where: { address, updated_since: since } = {} } = selection;
    const isFound = address !== undefined && source.byHost !== true && areFew(address);
    if (isFound || (since !== undefined && source.staged === undefined)) {
        return null;
    }

    const pace = paceOf(() => performance.now(), RANGE);
    const timed = (rows: number, work: () => Promise<Ranged>): Promise<Ranged> =>
        pace.timed(rows, work, { most: mostTimesAsMany, took: ({ took }) => took });

    /** Those behind a place in the order of changes, until one of them is the last or has enough. */
    async function untilEnoughChanges(reader: Reader, from: Part, since: Date, work: Work, signal?: AbortSignal): Promise<void> {
        for (let after: Position | undefined = from.after, goesOn = true; goesOn; ) {
            const rows = pace.size();
            const { text, values }: Statement = ending(source, path, { after, since }, rows);
            const until: Position | undefined = (await reader.query<Position>(text, values, signal)).rows[0];
            const { enough } = await timed(rows, () => work({ ...from, ...(after !== undefined && { after }), until }));
            goesOn = until !== undefined && !enough;
            after = until;
        }
    }

    /** The same in the order of ids. */
    async function untilEnoughIds(from: Part, work: (range: IdRange) => Promise<Ranged>, next: Next): Promise<void> {
        for (let after: number | null = from.after?.id ?? 0; after !== null; ) {
            const ids = pace.size();
            const until: Position = { id: Math.min(after + ids, MAX_ID) };
            const range = { ...from, after: { id: after }, until };
            const ranged = await timed(ids, () => work(range));
            const id: number | null = ranged.enough ? null : ranged.next === undefined ? await next(until) : ranged.next;
            after = id === null ? null : id - 1;
        }
    }

    async function untilEnough(reader: Reader, from: Part, work: Work, signal?: AbortSignal): Promise<void> {
        if (since !== undefined) {
            await untilEnoughChanges(reader, from, since, work, signal);
            return;
        }

        await untilEnoughIds(from, work, async (behind) => {
            const { text, values } = beginning(source, path, behind);
            return (await reader.query<{ next: number | null }>(text, values, signal)).rows[0]?.next ?? null;
        });
    }

    return {
        async read(reader, part, read, signal) {
            const { limit = Number.POSITIVE_INFINITY } = part;
            let found: Awaited<ReturnType<typeof read>> = [];
            const work = async (range: Part): Promise<Ranged> => {
                found = [...found, ...(await read({ ...range, limit: limit - found.length }))];
                return { enough: found.length >= limit };
            };
            await untilEnough(reader, part, work, signal);
            return found;
        },

        async count(count) {
            let sum = 0;
            const work = async (range: IdRange): Promise<Ranged> => {
                const { count: more, ...ranged } = await count(range);
                sum += more;
                return { enough: false, ...ranged };
            };
            await untilEnoughIds({}, work, async () => null);
            return sum;
        },

        async each(reader, work, signal) {
            const ranged = async (range: Part): Promise<Ranged> => {
                await work(range);
                return { enough: false };
            };
            await untilEnough(reader, {}, ranged, signal);
        },
    };
}
