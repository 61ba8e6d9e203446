import type { PoolLike } from '../../../adapters/postgres/index.ts';
import { ScanwireError } from '../../../lib/errors.ts';

/** A pool whose process dies before a statement that matches: nothing of it reaches the database from then on. */
export function dyingAt(pool: PoolLike, statement: RegExp, times: number): PoolLike {
    let left = times;
    return failingWhere(pool, (text) => {
        left -= left > 0 && statement.test(text) ? 1 : 0;
        if (left === 0) {
            throw new ScanwireError('UNAVAILABLE', 'killed');
        }
    });
}

/** A pool on which the first statement that matches fails. */
export function failingOnceAt(pool: PoolLike, statement: RegExp): PoolLike {
    let left = 1;
    return failingWhere(pool, (text) => {
        if (left > 0 && statement.test(text)) {
            left -= 1;
            throw new Error('failed');
        }
    });
}

/** A pool whose connection breaks when the transaction of the first statement that matches has been committed. */
export function losingTheAnswerTo(pool: PoolLike, statement: RegExp): PoolLike {
    let state: 'before' | 'within' | 'after' = 'before';
    return failingWhere(
        pool,
        (text) => {
            state = state === 'before' && statement.test(text) ? 'within' : state;
        },
        (text) => {
            if (state === 'within' && text === 'commit') {
                state = 'after';
                throw new ScanwireError('UNAVAILABLE', 'lost');
            }
        },
    );
}

/** A pool whose statements fail where `before` or `after` them something throws. */
function failingWhere(pool: PoolLike, before: (text: string) => void, after: (text: string) => void = () => {}): PoolLike {
    return {
        query: pool.query.bind(pool),
        async connect() {
            const client = await pool.connect();
            return {
                query: async (text: string, values?: unknown[]) => {
                    before(text);
                    const result = await client.query(text, values);
                    after(text);
                    return result;
                },
                on: client.on.bind(client),
                removeListener: client.removeListener.bind(client),
                release: () => client.release(true),
            } as Awaited<ReturnType<PoolLike['connect']>>;
        },
    };
}

/** Sets the clock of the stores ahead. */
export async function setAhead(pool: PoolLike, seconds: number): Promise<void> {
    await pool.query(`create or replace function scanwire.now() returns timestamptz language sql volatile
        as $$ select date_trunc('milliseconds', clock_timestamp()) + interval '${seconds} seconds' $$`);
}

/** As if the time had passed after which a lease ends. */
export async function leasesEnd(pool: PoolLike): Promise<void> {
    await setAhead(pool, 41);
}
