import t from 'tap';
import { at, WebhookBench } from '../../../../adapters/contract/webhooks/fixture.ts';
import { migratedPool } from '../../../support/migrated-database.ts';
import { emptyWebhookStores } from './empty-webhook-stores.ts';

const pool = await migratedPool(t, { max: 4 });
const empty = emptyWebhookStores(pool);

async function storedDelivery(): Promise<string> {
    await empty.start();
    const bench = new WebhookBench(empty);
    await bench.addExporter();
    await bench.setTime(at(0));
    await bench.publish();
    const { rows } = await pool.query<{ id: string }>('select id from scanwire.deliveries');
    return rows[0]?.id as string;
}

async function change(id: string, set: string): Promise<unknown> {
    const { rows } = await pool.query(`update scanwire.deliveries set ${set} where id = $1 returning state, stage, ended_as as "endedAs"`, [
        id,
    ]);
    return rows[0];
}

t.test('nothing is kept as text that each statement which stores or finishes a delivery would have to read and plan', async (t) => {
    const { rows } = await pool.query(`
        select conname as name from pg_constraint where conrelid = 'scanwire.deliveries'::regclass and contype = 'c'
        union all
        select attname from pg_attribute where attrelid = 'scanwire.deliveries'::regclass and attgenerated <> ''
        union all
        select tgname from pg_trigger
        where
            tgrelid in ('scanwire.deliveries'::regclass, 'scanwire.events'::regclass, 'scanwire.attempts'::regclass) and tgqual is not null
            -- bits of INSERT and of DELETE; of UPDATE only what is for no column or for the state
            and (tgtype & 4 > 0 or (tgtype & 16 > 0 and (tgattr = '' or tgattr::text = any (
                select attnum::text from pg_attribute where attrelid = tgrelid and attname = 'state'
            ))))`);
    t.strictSame(rows, []);
});

t.test('a delivery has the stage of its state, whatever else is written', async (t) => {
    const id = await storedDelivery();
    for (const [state, stage] of [
        ['pending', 'waiting'],
        ['queued', 'in flight'],
        ['sending', 'in flight'],
        ['delivered', 'delivered'],
        ['exhausted', 'failed'],
        ['poisoned', 'failed'],
        ['cancelled', 'failed'],
        ['erased', 'failed'],
        ['held', 'failed'],
    ] as const) {
        const stored = { state, stage, endedAs: stage === 'failed' ? state : null };
        t.strictSame(await change(id, `state = '${state}'`), stored);
        t.strictSame(await change(id, `stage = 'elsewhere'`), stored);
    }
    t.strictSame(await change(id, `state = 'pending'`), { state: 'pending', stage: 'waiting', endedAs: null });
});

t.test('a state that there is not is refused', async (t) => {
    const id = await storedDelivery();
    await t.rejects(change(id, `state = 'lost'`), { code: '23502', column: 'stage' });
    await t.rejects(
        pool.query(`
            insert into scanwire.deliveries (event_id, exporter_id, due_at, priority, collector, state)
            select event_id, exporter_id, due_at, priority, collector, 'lost' from scanwire.deliveries`),
        { code: '23502', column: 'stage' },
    );
});

t.test('what is queued has a number, a new one each time', async (t) => {
    const id = await storedDelivery();
    const number = async (): Promise<unknown> =>
        (await pool.query('select flight::integer as flight from scanwire.deliveries where id = $1', [id])).rows[0]?.flight;
    await change(id, `state = 'queued'`);
    const first = await number();
    await change(id, `state = 'queued'`);
    t.equal(await number(), first);
    await change(id, `state = 'pending'`);
    await change(id, `state = 'queued'`);
    t.equal(await number(), Number(first) + 1);
});
