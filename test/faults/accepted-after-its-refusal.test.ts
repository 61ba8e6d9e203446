import { randomBytes } from 'node:crypto';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { postgresWebhooks } from '../../adapters/postgres/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';
import { investigation } from '../support/investigation.ts';
import { migratedPool } from '../support/migrated-database.ts';

const KIND = 'idr_investigation_created';

/** An engine that publishes over a pool of one connection. */
async function publishing(t: Test) {
    const pool = await migratedPool(t, { max: 1 });
    const guard = egressGuard({ allow: [] });
    const ring = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
    const engine = webhooks({
        ...postgresWebhooks({ pool, notify: false }),
        queue: memoryQueue(),
        keyRing: ring,
        guard,
        sender: httpSender({ guard }),
    });
    // Whoever chooses is known from then on.
    await engine.publish(KIND, investigation);
    const stored = async (): Promise<number> => Number((await pool.query('select count(*) from scanwire.events')).rows[0]?.count) - 1;
    return { pool, engine, stored };
}

t.test('what is withdrawn while it waits for a connection is not stored, and what shares its statement is', async (t) => {
    const { pool, engine, stored } = await publishing(t);
    const held = await pool.connect();
    const withdrawal = new AbortController();
    const { signal } = withdrawal;
    const options = [{ signal }, {}, { signal, orderKey: 'o' }, { signal, idempotencyKey: 'i' }];
    // The first two have statements to themselves, those behind them share one.
    const others = [engine.publish(KIND, investigation), engine.publish(KIND, investigation)];
    const asked = options.map((one) => engine.publish(KIND, investigation, one));
    const settled = Promise.allSettled(asked);
    await until(() => pool.waitingCount >= 4);
    const reason = new Error('Nobody waits any more');
    withdrawal.abort(reason);
    held.release();
    t.match(await settled, [{ reason }, { status: 'fulfilled' }, { reason }, { reason }]);
    await Promise.all(others);
    t.equal(await stored(), 3);
});

t.test('what has begun is accepted, whoever withdraws it', async (t) => {
    const { pool, engine, stored } = await publishing(t);
    const holder = await pool.connect();
    await holder.query('select 1');
    const withdrawal = new AbortController();
    const published = engine.publish(KIND, investigation, { signal: withdrawal.signal });
    await until(() => pool.waitingCount === 1);
    pool.once('acquire', () => setImmediate(() => withdrawal.abort()));
    holder.release();
    t.type((await published).eventId, 'string');
    t.equal(await stored(), 1);
});
