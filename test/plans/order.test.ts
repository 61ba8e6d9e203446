import pg from 'pg';
import t from 'tap';
import { only } from '../../adapters/contract/assertions.ts';
import { failure, forAll, holderOf, sampleEvent, sampleExporter, success } from '../../adapters/contract/webhooks/fixture.ts';
import { migrate, postgresWebhooks } from '../../adapters/postgres/index.ts';
import type { HandedOut } from '../../lib/webhooks/deliveries/delivery-store.ts';
import { testDatabase } from '../support/test-database.ts';
import { explainedConnection, neverVacuum } from './executed-plans.ts';
import { quietServer } from './quiet-server.ts';
import { BREAKER, HAND_OUT } from './way.ts';

/** The most pages that a statement may ask for, for one row. To look through all that waits takes 1,800. */
const MAX_PAGES = 300;
/** Deliveries that wait for one that fails. */
const WAITING = 5_000;
/** Milliseconds in which one dispatch looks through all that waits, and how often what happens within them is measured. */
const LOOKED_THROUGH_EVERY = 5_000;
const ROUNDS = 8;
const DISPATCH = { ...HAND_OUT, limit: 500 };

t.test('what waits for another of its key costs no dispatch anything', async (t) => {
    const { url, drop } = await testDatabase('template1', await quietServer(t));
    const pool = new pg.Pool({ connectionString: url });
    pool.on('error', () => {}); // the pool has ended before its connections have
    t.teardown(async () => {
        await pool.end();
        await drop();
    });
    await migrate(pool);
    // One at work, on whatever table, holds a snapshot, for which what is dead has to be passed by.
    await neverVacuum(pool);
    const { exporters, deliveries } = postgresWebhooks({ pool, notify: false });
    await exporters.insert(sampleExporter({ ordered: true }));
    const keyed = (orderKey: string) => ({ ...forAll(sampleEvent()), orderKey });
    const head = only(only(await deliveries.accept([keyed('a')], { handOut: HAND_OUT })).handedOut);
    // Half of them as in a transaction of the application: what is behind is not known then.
    for (let accepted = 0; accepted < WAITING; accepted += 500) {
        await deliveries.accept(
            Array.from({ length: 500 }, () => keyed('a')),
            accepted < WAITING / 2 ? { handOut: HAND_OUT } : {},
        );
    }
    const fail = (one: HandedOut, begunAt: Date) => [failure(holderOf(one), 0, { begunAt, health: 'none' })];
    t.same((await deliveries.dispatch(DISPATCH)).handedOut, [], 'all are passed by once');
    // A dispatch looks through all that waits once in five seconds, and passes by the dead of a second: time is set, whatever the machine takes.
    await pool.query(`create or replace function scanwire.now() returns timestamptz language sql volatile
        as $$ select coalesce(current_setting('test.now', true)::timestamptz, clock_timestamp()) $$`);
    const begin = Math.ceil(Date.now() / LOOKED_THROUGH_EVERY) * LOOKED_THROUGH_EVERY;

    const connection = await explainedConnection(url);
    t.teardown(() => connection.end());
    const explained = postgresWebhooks({ pool: connection.pool, notify: false }).deliveries;
    const pages: Record<string, number[]> = { 'hand out nothing': [], 'finish with a failure': [], 'hand out the first again': [] };
    const measure = async (name: string, task: () => Promise<unknown>): Promise<void> => {
        pages[name]?.push((await connection.executed(task)).pages);
    };
    let first = head;
    for (let round = 0; round < ROUNDS; round += 1) {
        const now = new Date(begin + (round * LOOKED_THROUGH_EVERY) / ROUNDS).toISOString();
        await connection.pool.query("select set_config('test.now', $1, false)", [now]);
        await measure('hand out nothing', () => explained.dispatch(DISPATCH));
        const begunAt = await explained.now();
        await measure('finish with a failure', () => explained.recordOutcomes(fail(first, begunAt), BREAKER));
        await measure('hand out the first again', async () => {
            first = only((await explained.dispatch(DISPATCH)).handedOut);
        });
        t.equal(first.deliveryId, head.deliveryId);
    }
    for (const [name, all] of Object.entries(pages)) {
        const [, , most = 0] = all.sort((one, other) => other - one);
        t.comment(`${name}: ${all.join()} pages`);
        t.ok(most <= MAX_PAGES, `${name}: ${all.join()} pages`);
    }

    const other = only(only(await deliveries.accept([keyed('b')], { handOut: HAND_OUT })).handedOut);
    await deliveries.recordOutcomes([success(holderOf(other), { begunAt: await deliveries.now() })], BREAKER);
    t.equal((await deliveries.get(other.deliveryId))?.state, 'delivered', 'another key goes on');
});
