import { setMaxListeners } from 'node:events';
import type { Reader } from '../left-statements.ts';

/** What the statements of readers go to. */
export interface Readers {
    /** Somebody waits for these: a row, a page, the first batch of a listing. */
    readonly database: Reader;
    /** The first batches of listings as text: of many that begin together a few at once, or one after the other with rests where they are of long ones and somebody asks for a row or a page. */
    readonly firsts: Reader;
    /** The batches behind the first one, of all listings together: a few at once, the others in their order. */
    readonly further: Reader;
    /** The second ones of listings as text, in turn with the others. Where one has {@link SHORT_BATCH} rows, its listing is a long one. */
    readonly seconds: Reader;
    /** The same of statements that may read many rows to find or to count few. */
    readonly searching: Pick<Readers, 'database' | 'further'> & {
        /** Whether everybody waits for each of them: then they look through rows range by range. */
        readonly inRanges: boolean;
    };
    /** Those behind them, in turn with the others: each statement selects an id and a text, and results in one `TextBatch`. */
    readonly texts: Reader;
    /** Whether several listings wait for their turns. */
    areSeveral(): boolean;
    /** Says that somebody asks for a row or a page: a listing is not alone then. */
    noteAsker(): void;
    /** Whether a listing is not alone: several wait for their turns, or somebody has asked for a row or a page just now. */
    isShared(): boolean;
}

/**
 * A signal of the application's may serve many readings at once, each of which listens for as long as it waits; Node warns of more than ten listeners. A
 * signal of each listing's own, by `AbortSignal.any`, would take as long to make and to collect as a short listing itself.
 */
export function forManyListings(signal: AbortSignal | undefined): AbortSignal | undefined {
    if (signal !== undefined) {
        setMaxListeners(0, signal);
    }
    return signal;
}

/** How many are read at once, where nobody else is kept waiting and where somebody is. */
interface AtOnce {
    readonly alone: number;
    readonly shared: number;
}

/** It takes two to keep the database at work for one listing that is alone. Of several, the listings are not read sooner by more than one, and what else is asked waits longer. */
const FURTHER: AtOnce = { alone: 2, shared: 1 };
/**
 * First batches are small, and short listings have no other. Those of a crowd of long ones may each take a connection that has to be made first, and come from
 * the database in the same few turns of the event loop.
 */
const FIRSTS: AtOnce = { alone: 4, shared: 1 };

/** Rows of the first batch of a listing as text: few, since somebody waits for it. */
export const FIRST_BATCH = 250;

/** Rows of a batch of a listing as text that is not alone: a turn of the event loop is short then, and what waits to be sent is little. */
export const SHORT_BATCH = 500;

/** How long somebody who asked for a row or a page is expected to ask again, and somebody else to read a long listing, in milliseconds. */
const EXPECTED_FOR = 1000;

/**
 * Behind a batch of a long listing that is not alone none of its kind is read for three times as long as it took: it is sent meanwhile, and who asks for
 * something else finds the event loop and the processors free. What is sent is also what V8 collects behind it, for some milliseconds each time: the less a
 * second, the fewer pauses.
 */
const RESTS = 3;
/** In milliseconds, however slow the database is: what is slow then is not this process. */
const LONGEST_REST = 50;

/** How time passes, in milliseconds. */
export interface Pace {
    now(): number;
    after(passed: number, task: () => void): void;
}

/** How readers take turns. */
export interface ReadersOptions {
    readonly pace?: Pace;
    /** Of searches, as `Readers` has it. */
    readonly inRanges?: boolean;
}

const REAL_PACE: Pace = { now: () => performance.now(), after: (passed, task) => void setTimeout(task, passed) };

/**
 * However many listings are read, what else is asked waits for a batch or two and no more, at the database as in this process (see
 * `docs/postgres.md` for what was measured).
 */
export function readersOf(
    database: Reader,
    texts: Reader,
    searching: Reader = database,
    { pace = REAL_PACE, inRanges = false }: ReadersOptions = {},
): Readers {
    const askers = lately(pace);
    const begin = turns(FIRSTS, pace, ({ areLong }) => areLong && askers.areThere());
    const goOn = turns(FURTHER, pace, ({ areSeveral }) => areSeveral || askers.areThere());
    return {
        database,
        firsts: begin.of(database, { restsFrom: FIRST_BATCH }),
        further: goOn.of(database),
        searching: { database: searching, further: goOn.of(searching), inRanges },
        seconds: goOn.of(database, { restsFrom: SHORT_BATCH }),
        texts: goOn.of(texts, { restsFrom: 0 }),
        areSeveral: goOn.areSeveral,
        isShared: goOn.isShared,
        noteAsker: askers.note,
    };
}

/** Who was there within the last second, and so may be again. */
function lately(pace: Pace) {
    let expectedUntil = Number.NEGATIVE_INFINITY;
    return {
        areThere: (): boolean => pace.now() < expectedUntil,

        note(): void {
            expectedUntil = pace.now() + EXPECTED_FOR;
        },
    };
}

/** What is known of those that take turns. */
interface InTurn {
    /** Whether several wait. */
    readonly areSeveral: boolean;
    /** Whether one of the last second had a batch that is rested behind. */
    readonly areLong: boolean;
}

/** @param keepsOthers Whether to read on as quickly as one can would keep somebody else waiting. */
function turns(atOnce: AtOnce, pace: Pace, keepsOthers: (those: InTurn) => boolean) {
    const longOnes = lately(pace);
    const waiting: (() => void)[] = [];
    let underWay = 0;
    let rests = false;

    /** Whoever leaves gives up the place. */
    async function turn(signal: AbortSignal | undefined): Promise<void> {
        signal?.throwIfAborted();
        await new Promise<void>((begin, refuse) => {
            const proceed = (): void => {
                signal?.removeEventListener('abort', leave);
                begin();
            };
            const leave = (): void => {
                waiting.splice(waiting.indexOf(proceed), 1);
                refuse(signal?.reason);
                beginSome();
            };
            signal?.addEventListener('abort', leave, { once: true });
            waiting.push(proceed);
            beginSome();
        });
    }

    const areSeveral = (): boolean => waiting.length > 1;
    const isShared = (): boolean => keepsOthers({ areSeveral: areSeveral(), areLong: longOnes.areThere() });

    function rest(took: number): void {
        if (isShared() && !rests) {
            rests = true;
            pace.after(Math.min(took * RESTS, LONGEST_REST), () => {
                rests = false;
                beginSome();
            });
        }
    }

    function beginSome(): void {
        while (!rests && waiting.length > 0 && underWay < (isShared() ? atOnce.shared : atOnce.alone)) {
            underWay += 1;
            waiting.shift()?.();
        }
    }

    return {
        areSeveral,
        isShared,

        /** @param restsFrom Rows of a batch, at least, that is rested behind; none is by default. */
        of: (reader: Reader, { restsFrom }: { readonly restsFrom: number } = { restsFrom: Number.POSITIVE_INFINITY }): Reader => ({
            async query<Row>(text: string, values?: unknown[], signal?: AbortSignal) {
                await turn(signal);
                const begun = pace.now();
                try {
                    const result = await reader.query<Row>(text, values, signal);
                    if (result.rows.length >= restsFrom) {
                        longOnes.note();
                        rest(pace.now() - begun);
                    }
                    return result;
                } finally {
                    underWay -= 1;
                    beginSome();
                }
            },
        }),
    };
}
