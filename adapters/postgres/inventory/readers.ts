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

/** Batches that are read at once. With more of them the listings are not read sooner. */
const AT_ONCE = 2;

/**
 * However many listings are read, what else is asked waits for a few batches and no more, at the database as in this process. Measured: one
 * host takes 10 ms beside one index of all hosts, and took 136 ms beside twenty (see `docs/postgres.md`).
 */
export function readersOf(database: Executor, texts: Executor, searching: Executor = database): Readers {
    const waiting: (() => void)[] = [];
    let underWay = 0;

    async function turn(): Promise<void> {
        if (underWay < AT_ONCE) {
            underWay += 1;
        } else {
            await new Promise<void>((begin) => waiting.push(begin));
        }
    }

    function next(): void {
        const begin = waiting.shift();
        if (begin === undefined) {
            underWay -= 1;
        } else {
            begin();
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
