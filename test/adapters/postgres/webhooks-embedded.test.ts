import { PGlite } from '@electric-sql/pglite';
import t from 'tap';
import { webhookStoresContract } from '../../../adapters/contract/webhooks.ts';
import type { ClientLike, PoolLike } from '../../../adapters/postgres/pool.ts';
import { tapTest } from '../contract/tap-test.ts';
import { emptyStores, SCHEMA } from './webhook-database.ts';

const database = await PGlite.create();
t.teardown(() => database.close());
await database.exec(SCHEMA);

webhookStoresContract(tapTest(t), () => emptyStores(poolOver(database)));

/** One session for all: who has taken a client out keeps the others waiting. */
function poolOver(database: PGlite): PoolLike {
    let free = Promise.resolve();
    const run: PoolLike['query'] = async (text, values) => {
        // biome-ignore lint/suspicious/noExplicitAny: rows have the shape that the statement gives them
        const { rows, affectedRows } = await database.query<any>(text, values);
        return { rows, rowCount: affectedRows ?? rows.length };
    };
    return {
        async query(text, values) {
            await free;
            return await run(text, values);
        },
        async connect() {
            await free;
            let release = (): void => {};
            free = new Promise((resolve) => {
                release = resolve;
            });
            return { query: run, release: () => release() } satisfies ClientLike;
        },
    };
}
