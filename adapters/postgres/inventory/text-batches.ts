import { setImmediate } from 'node:timers/promises';
import { MAX_ID } from '../../../lib/inventory/fields.ts';
import type { Collection, ReadOptions } from '../../../lib/inventory/store.ts';
import type { Reader } from '../left-statements.ts';
import { prepared } from '../prepared.ts';
import { batchOf, type TextOfRow } from './copy-out.ts';
import type { IdWindows } from './id-windows.ts';
import { FIRST_BATCH, forManyListings, type Readers, SHORT_BATCH } from './readers.ts';

/** Rows of the second batch. Text costs little to read, so that batches are larger than those of rows, and round trips fewer. */
const BATCH = 1000;
/** In a long listing, whose statements are planned each time: half a megabyte of hosts. Twice as many are read no sooner, and keep whoever else asks waiting half as long again. */
const LONG_BATCH = 1000;

/**
 * Maximum number of bytes of the texts of a batch. The batch behind one whose rows are longer than expected has fewer rows, so that it fits. Most rows have some hundred bytes,
 * while a scanned machine can make its own a hundred times as long.
 */
const MAX_BYTES = 8 * 2 ** 20;

/** Rows whose texts are made into one, as much as is received at once. */
const PART = 100;

/** Ids to a row, at most, that lie close together. */
const CLOSE = 4;

/** Rows whose batches' bounds are looked up at once, in a walk along ids that takes a few milliseconds. */
const BOUNDED = 16_000;
/** Batches of a long listing that are read at once where the database makes their text: it does so on as many of its processors. */
const AT_ONCE = 2;

/** Where the texts of rows come from. */
export interface TextSource {
    /** The columns that hold the ids of the path, by number. */
    readonly parents: number;
    /**
     * Selects `id` and `text` of the rows behind an id and up to another, both expressions, in their order; the path is the first parameters.
     *
     * @param within Makes of the table's name something else that has some of its rows.
     */
    page(after: string, until?: string, within?: (name: string) => string): string;
    /** Whether rows may be read so now. */
    readonly usable?: string;
    /** Whether the text is kept, and not made: it is read sooner than it is looked up where a batch ends. */
    readonly isKept?: boolean;
    /** The columns of the rows that a page reads, for a role that may read no others; all by default. */
    readonly columns?: readonly string[];
    /** Where a page without an end has one all the same. */
    readonly windows?: IdWindows;
    /** Rows of a batch of a long listing where the text is made; more of them where the statement itself is long. */
    readonly atOnce?: number;
}

/** The condition that rows are behind an id and, where there is one, up to another. */
export function idsWithin(after: string, until?: string): string {
    return `rows.id > ${after}${until === undefined ? '' : ` and rows.id <= ${until}`}`;
}

/** A `from` that begins with a table called `rows`, with something else in its place. */
export function fromWithin(from: string, within?: (name: string) => string): string {
    return within === undefined ? from : from.replace(/^\S+ rows/, within);
}

/** Texts of rows that were read at once, in the order of the rows. */
export interface TextBatch {
    /** With commas between the rows of each; null where not every row has a text. */
    readonly texts: readonly (string | Uint8Array)[] | null;
    /** The highest id, null without rows. */
    readonly last: number | null;
    readonly rows: number;
}

interface TextPage extends TextBatch {
    readonly isLast: boolean;
}

/**
 * Rows as text, in batches. While one is written the next are read; each is a statement of its own, so that a slow reader holds neither a
 * connection nor a snapshot.
 *
 * @param select Reads the rows of a batch of which not every one has a text.
 */
export function textBatches<Row extends { readonly id: number }>(
    readers: Readers,
    source: TextSource,
    select: NonNullable<Collection<Row>['select']>,
): (path: readonly number[], options?: ReadOptions) => AsyncGenerator<string | Uint8Array | readonly Row[]> {
    const reading = textReading(readers, source);

    return async function* (path, options = {}) {
        forManyListings(options.signal);
        const batches = batchesAhead(reading(path, options.signal));
        for (let batch = batches.next(); batch !== undefined; batch = batches.next()) {
            const page = await batch.page;
            const { texts, last, rows, isLast } = page;
            options.signal?.throwIfAborted();
            if (texts !== null) {
                await batches.ask(batch.until ?? last, page);
                if (batches.next() !== undefined) {
                    // So that the next batch is under way before the text is written, which occupies the thread.
                    await setImmediate();
                }
                for (const text of texts) {
                    options.signal?.throwIfAborted();
                    yield text;
                }
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

type TextReading = ReturnType<ReturnType<typeof textReading>>;

/** The statements that read text. */
function textReading(
    { database, firsts, further, seconds, texts, areSeveral, isShared }: Readers,
    { parents, page, usable = 'true', isKept = false, columns, windows, atOnce = LONG_BATCH }: TextSource,
) {
    const behind = page(`$${parents + 1}`);
    // Row by row: what is longer than some ten KiB the database, which gives its memory back behind each statement, is slower to join than to send.
    const reading = (limit: number | string): string =>
        `select page.id, case when ${usable} then page.text end as text from (${behind} limit ${limit}) page`;
    const [first, second, ofSeveral] = [FIRST_BATCH, BATCH, SHORT_BATCH].map((limit) => prepared(reading(limit))) as [
        string,
        string,
        string,
    ];
    const long = reading(`$${parents + 2}`);
    // Row by row, text that is made would come in drops, each of which wakes this process up, and without an order part by part. Parts by ids
    // are hashed as the rows come; by the numbers of rows they would be put aside and sorted, with their texts.
    const [after, until, width] = [1, 2, 3].map((offset) => `$${parents + offset}`) as [string, string, string];
    const parts = Math.ceil(atOnce / PART);
    const between = `select max(page.id) as id, case when ${usable} and count(page.text) = count(*) then string_agg(page.text, ',') end as text
        from (${page(after, until)}) page
        group by (page.id::bigint - ${after} - 1) / ${width} order by 1`;
    // Where ids lie close together each part is looked for by itself, so that no more than its texts are held. The limit, which no range
    // reaches, tells the planner how few rows that are: of ranges that it does not know it takes each for a share of the table.
    const [start, end] = ['starts.id', `least(starts.id + ${width}, ${until})`];
    const some = columns?.map((column) => `"${column}"`).join(', ') ?? '*';
    const few = (name: string): string =>
        `(select ${some} from ${name} where ${idsWithin(start, end)} order by rows.id limit ${width}) rows`;
    const close = `select starts.id::integer as id, part.text from generate_series(${after}::bigint, ${until} - 1, ${width}) starts (id)
        cross join lateral (
            select case when ${usable} and count(page.text) = count(*) then string_agg(page.text, ',') end as text
            from (${page('0', undefined, few)}) page
            having count(*) > 0
        ) part
        order by 1`;
    // The planner leaves out the texts, which nobody asks for here.
    const bounds = prepared(`select ids[index] as id from (
            select array_agg(page.id) as ids from (${behind} limit ${BOUNDED}) page
        ) found cross join generate_series(${atOnce}, cardinality(ids), ${atOnce}) index order by index`);

    return (path: readonly number[], signal: AbortSignal | undefined) => {
        const asOne = async (reader: Reader, statement: string, from: number): Promise<TextBatch> =>
            batchOf((await reader.query<TextOfRow>(statement, [...path, from], signal)).rows);
        const asEach = async (statement: string, ...values: readonly number[]): Promise<TextBatch> =>
            (await texts.query<TextBatch>(withIds(statement, [...path, ...values]), undefined, signal)).rows[0] as TextBatch;
        const windowed = windows?.of(path, {});
        /** Where fewer rows than are asked for came of a window, the last of them is as good as where the next ones begin. */
        const wholly = async (from: number, limit: number, batch: TextBatch): Promise<TextPage> => {
            const isShort = batch.rows < limit;
            const next = isShort && windowed ? await windowed.next(database, from, signal) : null;
            return next === null ? { ...batch, isLast: isShort } : { ...batch, isLast: false, last: next };
        };
        const unbounded = (from: number, limit: number, batch: Promise<TextBatch>): AskedBatch => ({
            from,
            until: null,
            page: ask(batch.then((found) => wholly(from, limit, found))),
        });

        return {
            isKept,
            atOnce,
            first: (): AskedBatch => unbounded(0, FIRST_BATCH, asOne(firsts, first, 0)),
            second(from: number): AskedBatch {
                const [limit, statement] = areSeveral() ? [SHORT_BATCH, ofSeveral] : [BATCH, second];
                return unbounded(from, limit, asOne(seconds, statement, from));
            },
            long(from: number, rows: number): AskedBatch {
                const limit = isShared() ? Math.min(rows, SHORT_BATCH) : rows;
                return unbounded(from, limit, asEach(long, from, limit));
            },
            between: (from: number, until: number): AskedBatch => ({
                from,
                until,
                // Of parts it is not known how many rows they have; where some have no text, as many are read as there were.
                page: ask(
                    asEach(until - from > CLOSE * atOnce ? between : close, from, until, Math.ceil((until - from) / parts)).then(
                        (batch) => ({ ...batch, last: until, rows: Math.min(batch.rows, 1) * atOnce, isLast: false }),
                    ),
                ),
            }),

            /** Where the next batches end, as many of them as are whole. What stands for ids that the API has no form for is none that a batch ends at. */
            async bounds(from: number): Promise<readonly number[]> {
                const { rows } = await further.query<{ id: number }>(bounds, [...path, from], signal);
                return rows.map(({ id }) => id).filter((id) => id < MAX_ID);
            },
        };
    };
}

/** It may fail while nobody waits for it, and where nobody reads on nobody hears of it. */
function ask(asked: Promise<TextPage>): Promise<TextPage> {
    asked.catch(() => {});
    return asked;
}

/** A statement with ids in the places of its parameters: what is copied out takes none. */
function withIds(statement: string, ids: readonly number[]): string {
    return statement.replace(/\$(\d+)/g, (_, number) => String(ids[Number(number) - 1]));
}

function fittingLike({ texts, rows }: TextBatch): number {
    const bytes = (texts ?? []).reduce((sum, { length }) => sum + length, 0);
    return bytes === 0 ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor((rows * MAX_BYTES) / bytes));
}

/**
 * The batches of one listing. Most listings have one or two, which are read one after the other. In a longer listing whose text the database has to make, the ids at which
 * batches end are looked up first, so that several batches can be read at once.
 */
function batchesAhead(reading: TextReading) {
    let asked: readonly AskedBatch[] = [reading.first()];
    let bounds: readonly number[] = [];
    /** The bounds behind those in `bounds`, while they are looked up or once they are known; null where none were asked for. */
    let further: Promise<readonly number[]> | null = null;
    let batches = 1;
    /** How many rows fit into `MAX_BYTES`, if they are as long as those of the batch before. */
    let fitting = Number.POSITIVE_INFINITY;

    function readBehind(behind: number, isLong: boolean): AskedBatch {
        const isSecond = !isLong && fitting >= BATCH;
        return isSecond ? reading.second(behind) : reading.long(behind, Math.min(fitting, LONG_BATCH));
    }

    function lookUp(behind: number): Promise<readonly number[]> {
        const found = reading.bounds(behind);
        // As with a batch: nobody may wait for it.
        found.catch(() => {});
        return found;
    }

    function askBetween(behind: number): void {
        const ends = bounds.slice(0, AT_ONCE - asked.length);
        bounds = bounds.slice(ends.length);
        for (const end of ends) {
            asked = [...asked, reading.between(asked.at(-1)?.until ?? behind, end)];
        }
        const last = ends.at(-1);
        if (bounds.length === 0 && last !== undefined) {
            further = lookUp(last);
        }
    }

    return {
        next: (): AskedBatch | undefined => asked[0],

        /** Asks for what comes behind the batch that is next, which ends there. */
        async ask(end: number | null, page: TextPage): Promise<void> {
            const behind = end ?? 0;
            asked = asked.slice(1);
            batches += 1;
            fitting = fittingLike(page);
            if (page.isLast) {
                return;
            }

            const isLong = batches > 2;
            if (fitting < reading.atOnce) {
                bounds = [];
                further = null;
            } else if (isLong && !reading.isKept && bounds.length === 0) {
                further ??= lookUp(behind);
                bounds = await further;
            }
            askBetween(behind);
            if (asked.length === 0) {
                further = null;
                asked = [readBehind(behind, isLong)];
            }
        },

        /** The same where rows were read, perhaps others than those of the batch: what was asked for ahead may begin elsewhere. */
        askAgain(behind: number, isLast: boolean): void {
            bounds = [];
            further = null;
            asked = isLast ? [] : [readBehind(behind, false)];
        },
    };
}
