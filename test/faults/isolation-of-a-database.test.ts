import t, { type Test } from 'tap';
import { only, present } from '../../adapters/contract/assertions.ts';
import { at, BEGIN_WITHIN, forAll, holderOf, RULES, sampleEvent, success, WebhookBench } from '../../adapters/contract/webhooks/fixture.ts';
import { deliveries } from '../../adapters/postgres/webhooks/deliveries.ts';
import { emptyWebhookStores } from '../adapters/postgres/webhooks/empty-webhook-stores.ts';
import { meanwhile } from '../adapters/postgres/webhooks/meanwhile.ts';
import { migratedPool } from '../support/migrated-database.ts';

const HAND_OUT = { window: 10, breakerAfter: RULES.after, beginWithin: BEGIN_WITHIN };

/** Over a database whose transactions begin at this level unless they say another. */
async function orderedBench(t: Test, level: string) {
    const pool = await migratedPool(t, { max: 10, options: `-c default_transaction_isolation=${level.replace(' ', '\\ ')}` });
    const empty = emptyWebhookStores(pool);
    await empty.start();
    const bench = new WebhookBench(empty);
    await bench.addExporter({ ordered: true });
    await bench.setTime(at(0));
    return { pool, bench };
}

for (const level of ['read committed', 'repeatable read', 'serializable']) {
    t.test(`what is accepted while the one before it ends gets its turn, in a database of ${level}`, async (t) => {
        const { pool, bench } = await orderedBench(t, level);
        const keyed = { ...forAll(sampleEvent()), orderKey: 'a' };
        const first = holderOf(only(only(await bench.deliveries.accept([keyed], { handOut: HAND_OUT })).handedOut));
        let second: readonly string[] = [];
        await meanwhile(
            pool,
            async (client) => {
                second = only(
                    await deliveries(client).accept([{ ...forAll(sampleEvent()), orderKey: 'a' }], { handOut: HAND_OUT }),
                ).deliveries;
            },
            () => bench.record([success(first, { begunAt: at(1) })], at(10)),
        );
        t.same(await bench.dispatchedIds({ now: at(20) }), [present(second[0])]);
        t.same((await pool.query('show default_transaction_isolation')).rows, [{ default_transaction_isolation: level }]);
    });
}
