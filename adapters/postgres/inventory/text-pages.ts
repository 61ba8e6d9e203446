import { setImmediate } from 'node:timers/promises';
import type { Collection, ReadOptions } from '../../../lib/inventory/store.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { prepared } from '../prepared.ts';
import type { Readers } from './readers.ts';

/** They cost next to nothing here, so that round trips count sooner than with rows. The first batch is a small one: somebody waits for it. */
const [FIRST_BATCH, BATCH] = [250, 1000];

/**
 * Rows whose texts come as one. Of hosts that is what a driver receives at a time: more it has to put together, in memory that grows by
 * copying, which takes three times as long as all else that is done to a text.
 */
const PART = 100;

/** Batches whose bounds are looked up at once, in a walk along ids that takes a few milliseconds. */
const BOUNDED = 16;
/** Batches of a long listing that are read at once: the database makes text on as many of its processors. */
const AT_ONCE = 2;

/** Where the texts of rows come from. */
export interface TextSource {
    /** The columns that hold the ids of the path, by number. */
    readonly parents: number;
    /** Selects `id` and `text` of the rows behind an id and up to another, both expressions, in their order; the path is the first parameters. */
    page(after: string, until?: string): string;
    /** Whether rows may be read so now. */
    readonly usable?: string;
}

/** The condition that rows are behind an id and, where there is one, up to another. */
export function idsWithin(after: string, until?: string): string {
    return `rows.id > ${after}${until === undefined ? '' : ` and rows.id <= ${until}`}`;
}

/** Some rows of a batch, as the database answers. */
interface TextPart {
    /** Null when there are no rows, or they may not be read so. */
    readonly text: string | null;
    /** The highest id. */
    readonly last: number | null;
    readonly rows: number;
    readonly texts: number;
}

interface TextPage {
    /** Null when the rows have to be read as such. */
    readonly texts: readonly string[] | null;
    readonly last: number | null;
    readonly rows: number;
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
            const { texts, last, rows, isLast } = await batch.page;
            options.signal?.throwIfAborted();
            if (texts !== null) {
                await batches.ask(batch.until ?? last, isLast);
                // So that it is under way before somebody writes the text, which takes the thread.
                await setImmediate();
                yield* texts;
                continue;
            }

            // Of a batch whose rows were all removed meanwhile nothing is left to read.
            let behind = rows === 0 ? (batch.until ?? batch.from) : batch.from;
            for await (const part of select(path, { after: { id: behind }, limit: rows }, options)) {
                behind = part.at(-1)?.id ?? behind;
                yield part;
            }
            batches.askAgain(behind, isLast);
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
    const reading = (rows: string): string =>
        `select case when ${usable} then string_agg(page.text, ',') end as text, max(page.id) as last,
            count(*)::integer as rows, count(page.text)::integer as texts from (${rows}) page`;
    const behind = page(`$${parents + 1}`);
    const [first, others] = [FIRST_BATCH, BATCH].map((most) => prepared(reading(`${behind} limit ${most}`))) as [string, string];
    const between = prepared(`select part.* from unnest($${parents + 1}::integer[], $${parents + 2}::integer[])
        with ordinality bounds (after, until, place), lateral (${reading(page('bounds.after', 'bounds.until'))}) part order by place`);
    // The planner leaves out the texts, which nobody asks for here.
    const bounds = prepared(`select id from (
            select id, row_number() over () as place from (${behind} limit ${BOUNDED * BATCH}) page
        ) placed where place % ${PART} = 0 order by place`);

    /** @param most How many rows are asked for; where there are fewer, they are the last. */
    function ask(reader: Executor, statement: string, values: readonly unknown[], most = 0): Promise<TextPage> {
        const asked = reader.query<TextPart>(statement, [...values]).then(({ rows }) => pageOf(rows, most));
        // It may fail while nobody waits for it, and where nobody reads on nobody hears of it.
        asked.catch(() => {});
        return asked;
    }

    return {
        first: (path: readonly number[]): AskedBatch => ({ from: 0, until: null, page: ask(database, first, [...path, 0], FIRST_BATCH) }),
        further: (path: readonly number[], from: number): AskedBatch => ({
            from,
            until: null,
            page: ask(further, others, [...path, from], BATCH),
        }),
        /** @param ends Of each part. */
        between: (path: readonly number[], from: number, ends: readonly number[]): AskedBatch => ({
            from,
            until: ends.at(-1) ?? from,
            page: ask(further, between, [...path, [from, ...ends.slice(0, -1)], ends]),
        }),

        /** Where the next parts end, as many of them as are whole. */
        async bounds(path: readonly number[], from: number): Promise<readonly number[]> {
            const { rows } = await further.query<{ id: number }>(bounds, [...path, from]);
            return rows.map(({ id }) => id);
        },
    };
}

function pageOf(parts: readonly TextPart[], most: number): TextPage {
    const filled = parts.filter(({ rows }) => rows > 0);
    const isText = filled.every(({ text, rows, texts }) => text !== null && texts === rows);
    const rows = filled.reduce((sum, part) => sum + part.rows, 0);
    return {
        texts: isText ? filled.map(({ text }) => text as string) : null,
        last: filled.at(-1)?.last ?? null,
        rows,
        isLast: rows < most,
    };
}

/** The batches of one listing. Most listings have one or two; where there are more, it is looked up where they end, so that several are read at once. */
function batchesAhead(reading: TextReading, path: readonly number[]) {
    let asked: readonly AskedBatch[] = [reading.first(path)];
    let bounds: readonly number[] = [];
    let batches = 1;

    function askBetween(behind: number): void {
        while (asked.length < AT_ONCE && bounds.length > 0) {
            const from = asked.at(-1)?.until ?? behind;
            asked = [...asked, reading.between(path, from, bounds.slice(0, BATCH / PART))];
            bounds = bounds.slice(BATCH / PART);
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
        askAgain(behind: number, isLast: boolean): void {
            bounds = [];
            asked = isLast ? [] : [reading.further(path, behind)];
        },
    };
}
