import type { Executor } from '../../../lib/transaction.ts';

/** What the statements of readers go to. */
export interface Readers {
    /** Somebody waits for these: a row, a page, the first batch of a listing. */
    readonly database: Executor;
    /** The batches behind the first one, of all listings together: a few at once, the others in their order. */
    readonly further: Executor;
    /** The same of statements that may read many rows to find or to count few. */
    readonly searching: Pick<Readers, 'database' | 'further'>;
    /** Those of listings as text, in turn with the others: each statement selects an id and a text, and results in one `TextBatch`. */
    readonly texts: Executor;
}

/**
 * Batches that are read at once: for one listing it takes two to keep the database at work. Of several, the listings are not read sooner by more than
 * one, and what else is asked waits longer.
 */
const AT_ONCE = { ofOne: 2, ofSeveral: 1 } as const;

/**
 * However many listings are read, what else is asked waits for a batch or two and no more, at the database as in this process (see
 * `docs/postgres.md` for what was measured).
 */
export function readersOf(database: Executor, texts: Executor, searching: Executor = database): Readers {
    const waiting: (() => void)[] = [];
    let underWay = 0;

    async function turn(): Promise<void> {
        await new Promise<void>((begin) => {
            waiting.push(begin);
            beginSome();
        });
    }

    function next(): void {
        underWay -= 1;
        beginSome();
    }

    function beginSome(): void {
        while (waiting.length > 0 && underWay < (waiting.length > 1 ? AT_ONCE.ofSeveral : AT_ONCE.ofOne)) {
            underWay += 1;
            waiting.shift()?.();
        }
    }

    const inTurn = (reader: Executor): Executor => ({
        async query<Row>(text: string, values?: unknown[]) {
            await turn();
            try {
                return await reader.query<Row>(text, values);
            } finally {
                next();
            }
        },
    });
    return {
        database,
        further: inTurn(database),
        searching: { database: searching, further: inTurn(searching) },
        texts: inTurn(texts),
    };
}
