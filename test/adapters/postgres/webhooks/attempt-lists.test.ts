import t from 'tap';
import { registerLaws } from '../../../../adapters/contract/register-laws.ts';
import { attemptLaws } from '../../../../adapters/contract/webhooks/attempt-laws.ts';
import { onBench } from '../../../../adapters/contract/webhooks/fixture.ts';
import { type PoolLike, patiently } from '../../../../adapters/postgres/database.ts';
import { attemptLists, type Few } from '../../../../adapters/postgres/webhooks/attempt-lists.ts';
import type { AttemptStore } from '../../../../lib/webhooks/deliveries/attempt-lists.ts';
import { tapTest } from '../../contract/tap-test.ts';
import { databaseNamed } from '../databases.ts';
import { emptyWebhookStores } from './empty-webhook-stores.ts';

/** None are few, so that all are looked for in the order of their deliveries. */
const NONE: Few = { newest: 0, counted: 0, late: 0 };

/** Deliveries as they were before they had the kind and the time of their events. */
const OLDER = 'update scanwire.deliveries set kind = null, accepted_at = null where kind is not null';

for (const few of [undefined, NONE]) {
    for (const areOld of [false, true]) {
        const name = `${few === undefined ? 'gathered' : 'in their order'}${areOld ? ', without what old deliveries lack' : ''}`;
        t.test(`keeps the laws of lists of attempts, ${name}`, async (t) => {
            const { pool, stop } = await databaseNamed('PostgreSQL').openMigrated();
            t.after(stop);
            registerLaws(
                tapTest(t),
                () => {
                    const stores = emptyWebhookStores(pool);
                    const honest = attemptLists(() => patiently(pool), few);
                    return { ...stores, deliveries: { ...stores.deliveries, attemptLists: areOld ? aged(pool, honest) : honest } };
                },
                onBench(attemptLaws),
            );
        });
    }
}

function aged(pool: PoolLike, honest: AttemptStore): AttemptStore {
    return {
        async list(query) {
            await pool.query(OLDER);
            return await honest.list(query);
        },
        async count(filter, max) {
            await pool.query(OLDER);
            return await honest.count(filter, max);
        },
    };
}
