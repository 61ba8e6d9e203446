import { setImmediate } from 'node:timers/promises';
import type { Collection, ReadOptions } from '../../lib/inventory/store.ts';
import type { Executor } from '../../lib/transaction.ts';
import { prepared } from './prepared.ts';
import type { Readers } from './readers.ts';

/** They cost next to nothing here, so that round trips count sooner than with rows. The first batch is a small one: somebody waits for it. */
const [FIRST_BATCH, BATCH] = [250, 1000];

/** Bounds of batches that are looked up at once, in a walk along ids that takes a few milliseconds. */
const BOUNDS = 16;
/** Batches of a long listing that are read at once: the database makes text on as many of its processors. */
const AT_ONCE = 2;

/** Where the texts of rows come from. */
export interface TextSource {
    /** The columns that hold the ids of the path, by number. */
    readonly parents: number;
    /** Selects `id` and `text` of the rows behind an id, the parameter behind those of the path, in their order; perhaps with one more condition. */
    page(condition?: string): string;
    /** Whether rows may be read so now. */
    readonly usable?: string;
}

interface TextPage {
    /** Null when there are no rows, or they may not be read so. */
    readonly text: string | null;
    readonly last: number | null;
    readonly rows: number;
    readonly texts: number;
    readonly isLast: boolean;
}

/**
 * Rows as text, in batches. While one is written the next are read; each is a statement of its own, so that a slow reader holds neither a
 * connection nor a snapshot.
 *
 * @param select Reads the rows of a batch of which not every one has a text.
 */
export function textPages<Row extends { readonly id: number }>(
    readers: Readers,
    source: TextSource,
    select: NonNullable<Collection<Row>['select']>,
): (path: readonly number[], options?: ReadOptions) => AsyncGenerator<string | readonly Row[]> {
    const reading = textReading(readers, source);

    return async function* (path, options = {}) {
        const batches = batchesAhead(reading, path);
        for (let batch = batches.next(); batch !== undefined; batch = batches.next()) {
            const { text, last, rows, texts, isLast } = await batch.page;
            options.signal?.throwIfAborted();
            if (text !== null && texts === rows) {
                await batches.ask(batch.until ?? last, isLast);
                // So that it is under way before somebody writes the text, which takes the thread.
                await setImmediate();
                yield text;
                continue;
            }

            // Of a batch whose rows were all removed meanwhile nothing is left to read.
            let behind = rows === 0 ? (batch.until ?? batch.from) : batch.from;
            for await (const part of select(path, { after: { id: behind }, limit: rows }, options)) {
                behind = part.at(-1)?.id ?? behind;
                yield part;
            }
            batches.askAnew(behind, isLast);
        }
    };
}

/** A batch that was asked for: behind `from`, and up to `until` where that was looked up. */
interface AskedBatch {
    readonly from: number;
    readonly until: number | null;
    readonly page: Promise<TextPage>;
}

type TextReading = ReturnType<typeof textReading>;

/** The statements that read text. */
function textReading({ database, further }: Readers, { parents, page, usable = 'true' }: TextSource) {
    // Aggregates take the rows of a subquery in its order where nothing else is done to them; to sort them again takes half of the time.
    const reading = (rows: string, isLast: string): string =>
        prepared(`select case when ${usable} then string_agg(page.text, ',') end as text, max(page.id) as last,
            count(*)::integer as rows, count(page.text)::integer as texts, ${isLast} as "isLast" from (${rows}) page`);
    const upTo = (most: number): string => reading(`${page()} limit ${most}`, `count(*) < ${most}`);
    const [first, others, between] = [upTo(FIRST_BATCH), upTo(BATCH), reading(page(`rows.id <= $${parents + 2}`), 'false')];
    // The planner leaves out the texts, which nobody asks for here.
    const bounds = prepared(`select id from (
            select id, row_number() over () as place from (${page()} limit ${BOUNDS * BATCH}) page
        ) placed where place % ${BATCH} = 0 order by place`);

    function ask(reader: Executor, statement: string, values: readonly number[]): Promise<TextPage> {
        const asked = reader.query<TextPage>(statement, [...values]).then(({ rows }) => rows[0] as TextPage);
        // It may fail while nobody waits for it, and where nobody reads on nobody hears of it.
        asked.catch(() => {});
        return asked;
    }

    return {
        first: (path: readonly number[]): AskedBatch => ({ from: 0, until: null, page: ask(database, first, [...path, 0]) }),
        further: (path: readonly number[], from: number): AskedBatch => ({
            from,
            until: null,
            page: ask(further, others, [...path, from]),
        }),
        between: (path: readonly number[], from: number, until: number): AskedBatch => ({
            from,
            until,
            page: ask(further, between, [...path, from, until]),
        }),

        /** Where the next batches end, as many of them as are whole. */
        async bounds(path: readonly number[], from: number): Promise<readonly number[]> {
            const { rows } = await further.query<{ id: number }>(bounds, [...path, from]);
            return rows.map(({ id }) => id);
        },
    };
}

/** The batches of one listing. Most listings have one or two; where there are more, it is looked up where they end, so that several are read at once. */
function batchesAhead(reading: TextReading, path: readonly number[]) {
    let asked: readonly AskedBatch[] = [reading.first(path)];
    let bounds: readonly number[] = [];
    let batches = 1;

    function askBetween(behind: number): void {
        while (asked.length < AT_ONCE && bounds[0] !== undefined) {
            const from = asked.at(-1)?.until ?? behind;
            asked = [...asked, reading.between(path, from, bounds[0])];
            bounds = bounds.slice(1);
        }
    }

    return {
        next: (): AskedBatch | undefined => asked[0],

        /** Asks for what comes behind the batch that is next, which ends there. */
        async ask(end: number | null, isLast: boolean): Promise<void> {
            const behind = end ?? 0;
            asked = asked.slice(1);
            batches += 1;
            if (isLast) {
                return;
            }

            if (batches > 2 && asked.length === 0 && bounds.length === 0) {
                bounds = await reading.bounds(path, behind);
            }
            askBetween(behind);
            if (asked.length === 0) {
                asked = [reading.further(path, behind)];
            }
        },

        /** The same where rows were read, perhaps others than those of the batch: what was asked for ahead may begin elsewhere. */
        askAnew(behind: number, isLast: boolean): void {
            bounds = [];
            asked = isLast ? [] : [reading.further(path, behind)];
        },
    };
}
