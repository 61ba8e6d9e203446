import type { Pool } from 'pg';
import t, { type Test } from 'tap';
import { present } from '../../../../adapters/contract/assertions.ts';
import { forAll, sampleEvent, sampleExporter } from '../../../../adapters/contract/webhooks/fixture.ts';
import type { PoolLike } from '../../../../adapters/postgres/index.ts';
import { EVENT_MARGIN } from '../../../../lib/webhooks/deliveries/retention.ts';
import { keep } from '../../../plans/kept-rows.ts';
import { migratedPool } from '../../../support/migrated-database.ts';
import { databases } from '../databases.ts';
import { emptyWebhookStores } from './empty-webhook-stores.ts';

const DAY = 24 * 60 * 60_000;

/** Deliveries, with events and traces, that are so many days old, in the order in which they were stored. */
async function aged(pool: Pool, ages: readonly number[], each: number): Promise<void> {
    await keep(pool, ages.length * each);
    await pool.query(
        `with aged as (
            select d.id, d.event_id, scanwire.now() - ($1::float8[])[(row_number() over (order by d.seq) - 1) / $2 + 1] * interval '1 day' as at
            from scanwire.deliveries d
        ),
        traced as (
            update scanwire.traces t set kept_at = a.at from aged a where t.event_id = a.event_id
        ),
        accepted as (
            update scanwire.events e set created_at = a.at from aged a where e.id = a.event_id
        )
        update scanwire.deliveries d set accepted_at = a.at, finished_at = a.at from aged a where d.id = a.id`,
        [ages, each],
    );
    await pool.query('vacuum analyze');
}

/** By all batches of a turn. */
async function removedBy(turn: ReturnType<typeof turnOf>): Promise<readonly [deliveries: number, events: number]> {
    let [deliveries, events] = [0, 0];
    for await (const batch of turn) {
        deliveries += batch.deliveries;
        events += batch.events;
    }
    return [deliveries, events];
}

const turnOf = (pool: PoolLike, keepFor: number) => present(emptyWebhookStores(pool).deliveries.retention).expire(keepFor);

const ROWS_READ = 'coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)';
const LOOKS_INTO_INDEXES = 'coalesce(idx_scan, 0)';

/** What is counted of each table meanwhile, of the only connection of the pool. */
async function countedIn(pool: PoolLike, what: string, task: () => Promise<unknown>): Promise<Readonly<Record<string, number>>> {
    const countedSoFar = async () => {
        const { rows } = await pool.query<{ table: string; count: number }>(
            `select relname as table, (${what})::integer as count from pg_stat_xact_user_tables where schemaname = 'scanwire'`,
        );
        return rows;
    };
    await pool.query('begin');
    const before = new Map((await countedSoFar()).map(({ table, count }) => [table, count]));
    await task();
    const counted = (await countedSoFar()).map(({ table, count }) => [table, count - (before.get(table) ?? 0)] as const);
    await pool.query('commit');
    return Object.fromEntries(counted);
}

async function onlyConnection(t: Test): Promise<Pool> {
    const pool = await migratedPool(t, { max: 1 });
    await emptyWebhookStores(pool).exporters.insert(sampleExporter());
    return pool;
}

t.test('a turn that removes nothing reads no event and no trace of those that stay', async (t) => {
    const pool = await onlyConnection(t);
    await aged(pool, [40, 20, 10], 600);
    t.strictSame(await removedBy(turnOf(pool, 30 * DAY)), [600, 600]);
    const read = await countedIn(pool, ROWS_READ, async () => t.strictSame(await removedBy(turnOf(pool, 30 * DAY)), [0, 0]));
    t.strictSame([read.events, read.traces], [0, 0]);
    t.strictSame(await removedBy(turnOf(pool, 15 * DAY)), [600, 600], 'and what is old enough later is removed then');
});

t.test('a step reads no event for the time of a delivery', async (t) => {
    const pool = await onlyConnection(t);
    await aged(pool, [40, 20], 600);
    const turn = turnOf(pool, 30 * DAY)[Symbol.asyncIterator]();
    await turn.next();
    const read = await countedIn(pool, ROWS_READ, async () => t.strictSame((await turn.next()).value, { deliveries: 500, events: 0 }));
    t.equal(read.events, 0);
});

t.test('what a turn has read is not looked up again to remove it', async (t) => {
    const pool = await onlyConnection(t);
    await aged(pool, [40, 20], 600);
    await pool.query('truncate scanwire.idempotency_keys');
    const looks = await countedIn(pool, LOOKS_INTO_INDEXES, async () => t.strictSame(await removedBy(turnOf(pool, 30 * DAY)), [600, 600]));
    for (const table of ['deliveries', 'events', 'delivery_messages', 'attempt_responses', 'idempotency_keys']) {
        t.ok((looks[table] ?? 0) < 10, `${looks[table]} looks into indexes of ${table}`);
    }
});

t.test('what somebody holds stays until the next turn, with all that belongs to it', async (t) => {
    const pool = await migratedPool(t, { max: 2 });
    await emptyWebhookStores(pool).exporters.insert(sampleExporter());
    await aged(pool, [40], 3);
    const holder = await pool.connect();
    await holder.query('begin');
    await holder.query('select from scanwire.deliveries order by seq limit 1 for update');
    t.strictSame(await removedBy(turnOf(pool, 30 * DAY)), [2, 2]);
    await holder.query('commit');
    holder.release();
    const left = await pool.query(
        `select (select count(*) from scanwire.attempts)::integer as attempts, (select count(*) from scanwire.events)::integer as events,
            (select count(*) from scanwire.idempotency_keys)::integer as keys`,
    );
    t.strictSame(left.rows, [{ attempts: 1, events: 1, keys: 1 }]);
    t.strictSame(await removedBy(turnOf(pool, 30 * DAY)), [1, 1]);
});

t.test('deliveries from before they had the time of their events go by that of their events', async (t) => {
    const pool = await onlyConnection(t);
    await aged(pool, [40, 20], 600);
    await pool.query('update scanwire.deliveries set kind = null, accepted_at = null');
    t.strictSame(await removedBy(turnOf(pool, 30 * DAY)), [600, 600]);
});

/** More than a part of the table that is noted, and then some that are younger. */
const LARGE = `
insert into scanwire.events (id, kind, body, created_at)
select gen_random_uuid(), 'test', json_build_object('x', repeat('x', 1900)), scanwire.now() - case when n <= 4200 then 40 else 20 end * interval '1 day'
from generate_series(1, 4400) n`;

t.test('an event is removed wherever it is once its table was written anew', async (t) => {
    const pool = await onlyConnection(t);
    await pool.query(LARGE);
    t.strictSame(await removedBy(turnOf(pool, 30 * DAY)), [0, 4200]);
    await pool.query('vacuum full scanwire.events');
    t.strictSame(await removedBy(turnOf(pool, 15 * DAY)), [0, 200]);
});

for (const { name, openMigrated } of databases) {
    t.test(`an event is removed in its time though a clock was set back meanwhile, on ${name}`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        const { start, setTime, deliveries } = emptyWebhookStores(pool);
        const now = Date.now();
        await start();
        await deliveries.accept([forAll(sampleEvent())]);
        await setTime(new Date(now + 1_000 * DAY));
        t.strictSame(await removedBy(turnOf(pool, DAY)), [0, 1]);
        await setTime(new Date(now));
        await deliveries.accept([forAll(sampleEvent())]);
        await setTime(new Date(now + 40 * DAY));
        t.strictSame(await removedBy(turnOf(pool, 40 * DAY - EVENT_MARGIN)), [0, 0]);
        t.strictSame(await removedBy(turnOf(pool, 40 * DAY - EVENT_MARGIN - 1)), [0, 1]);
    });
}
