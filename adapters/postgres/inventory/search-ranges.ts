import { MAX_ID } from '../../../lib/inventory/fields.ts';
import type { Position, Selection } from '../../../lib/inventory/selection.ts';
import type { Reader } from '../left-statements.ts';
import { paceOf } from '../pace.ts';
import type { CollectionSource } from './collection.ts';
import { areFew } from './hosts-by-address.ts';
import { ending, type Part } from './selecting.ts';

/**
 * How many rows a search looks through at once, and how many milliseconds that should take: on the embedded database everybody waits meanwhile. It
 * begins with as many as it takes when their pages have not been read since the database was opened.
 */
const RANGE = { max: MAX_ID, first: 1_000, min: 250, takes: 40 } as const;

/** The rows of a range, and how many milliseconds it took to count them. */
export interface Counted {
    readonly count: number;
    readonly took: number;
}

/** A search that looks through the rows range by range, each by a statement of its own that gives way to others. */
export interface Ranges {
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
    /** @param count Counts those of a range. */
    count(reader: Reader, count: (part: Part) => Promise<Counted>, signal?: AbortSignal): Promise<number>;
    /** Does work for every range. */
    each(reader: Reader, work: (part: Part) => Promise<void>, signal?: AbortSignal): Promise<void>;
}

/** What came of a range. */
interface Ranged {
    /** Whether no more rows are wanted. */
    readonly enough: boolean;
    readonly took?: number;
}

/** The ranges of a selection; null where it is read at once: few hosts that are found by their addresses, and rows whose order no index has. */
export function rangesOf(source: CollectionSource, path: readonly number[], selection: Selection): Ranges | null {
    const { where: { address } = {} } = selection;
    const isFound = address !== undefined && source.byHost !== true && areFew(address);
    if (isFound || ending(source, path, selection, 1) === null) {
        return null;
    }

    const pace = paceOf(() => performance.now(), RANGE);

    /** Those behind a place, until one of them is the last or has enough. */
    async function untilEnough(reader: Reader, from: Part, work: (part: Part) => Promise<Ranged>, signal?: AbortSignal): Promise<void> {
        for (let after = from.after, goesOn = true; goesOn; ) {
            const rows = pace.size();
            const { text, values } = ending(source, path, { ...selection, ...(after !== undefined && { after }) }, rows) ?? {
                text: '',
                values: [],
            };
            const until = (await reader.query<Position>(text, values, signal)).rows[0];
            const ranged = () => work({ ...from, ...(after !== undefined && { after }), until });
            // Where there was enough, not all of it was looked through, though its end was looked for.
            const { enough } = await pace.timed(rows, ranged, { most: ({ enough }) => (enough ? 1 / 2 : 2), took: ({ took }) => took });
            goesOn = until !== undefined && !enough;
            after = until;
        }
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

        async count(reader, count, signal) {
            let sum = 0;
            const work = async (range: Part): Promise<Ranged> => {
                const { count: more, took } = await count(range);
                sum += more;
                return { enough: false, took };
            };
            await untilEnough(reader, {}, work, signal);
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
