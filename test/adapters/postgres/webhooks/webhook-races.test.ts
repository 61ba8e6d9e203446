import t from 'tap';
import { only, present } from '../../../../adapters/contract/assertions.ts';
import { at, failure, forAll, RULES, sampleEvent, success, WebhookBench } from '../../../../adapters/contract/webhooks/fixture.ts';
import { postgresWebhooks } from '../../../../adapters/postgres/index.ts';
import { deliveries } from '../../../../adapters/postgres/webhooks/deliveries.ts';
import { exporters } from '../../../../adapters/postgres/webhooks/exporters.ts';
import type { NewEvent } from '../../../../lib/webhooks/events/new-event.ts';
import { migratedPool } from '../../../support/migrated-database.ts';
import { emptyWebhookStores } from './empty-webhook-stores.ts';
import { meanwhile } from './meanwhile.ts';

const pool = await migratedPool(t, { max: 10 });

async function emptyBench(): Promise<WebhookBench> {
    const empty = emptyWebhookStores(pool);
    await empty.start();
    return new WebhookBench(empty);
}

const window = { now: at(0), window: 3, breakerAfter: 9, limit: 99 };

t.test('counts what another dispatcher has not committed yet', async (t) => {
    const own = await emptyBench();
    await own.addExporter();
    await own.publish({}, {}, {});
    const handed = await meanwhile(
        pool,
        (client) => deliveries(client).dispatch(window),
        async () => {
            await own.publishAt(at(-1));
            return await own.dispatchedIds(window);
        },
    );
    t.same(handed, [], 'the last event waits for room, though it goes first');
});

t.test('sees what was accepted while another dispatcher was at work', async (t) => {
    const own = await emptyBench();
    await own.addExporter();
    await own.publish();
    const handed = await meanwhile(
        pool,
        (client) => deliveries(client).dispatch(window),
        async () => {
            const id = only(await own.publish());
            return [id, await own.dispatchedIds(window)];
        },
    );
    t.same(handed[1], [handed[0]]);
});

t.test('cancels what a transaction of the host accepts during a removal', async (t) => {
    const own = await emptyBench();
    const { id } = await own.addExporter();
    const newEvent = { event: sampleEvent(), recipients: { types: ['investigation'] } } as const;
    const removed = await meanwhile(
        pool,
        (tx) => own.deliveries.accept([newEvent], { tx }),
        () => own.exporters.remove(id),
    );
    t.equal(removed, true);
    t.equal(only(await own.deliveries.list({ limit: 9 })).state, 'cancelled');
});

t.test('accepts nothing for an exporter whose removal commits first', async (t) => {
    const own = await emptyBench();
    const { id } = await own.addExporter();
    const accepted = await meanwhile(
        pool,
        (client) => client.query('select scanwire.remove_exporter($1, now(), $2)', [id, '{"timings":{}}']),
        () => own.publish(),
    );
    t.same(accepted, []);
});

/** Events of an owner for an exporter that has chosen them, in every way in which events are accepted. */
function waysOf(exporterId: string): Readonly<Record<string, readonly NewEvent[]>> {
    const chosen = (more: Partial<NewEvent> = {}): NewEvent => ({
        event: sampleEvent(),
        owner: 'ours',
        recipients: { types: ['investigation'], subscribers: [{ exporterId, message: null }] },
        ...more,
    });
    return {
        'one of an owner': [chosen()],
        'some of an owner': [chosen(), chosen()],
        'some in order': [chosen({ orderKey: 'key' }), chosen()],
        'one of everybody': [forAll(sampleEvent())],
        'some of everybody': [forAll(sampleEvent()), forAll(sampleEvent())],
        'some of everybody, whose bodies are JSON': [forAll(sampleEvent()), forAll(sampleEvent())].map((one) => ({ ...one, isJson: true })),
        'some of everybody, one with a key': [forAll(sampleEvent()), { ...forAll(sampleEvent()), idempotency: { key: '1', digest: '1' } }],
    };
}

t.test('gives no exporter another owner while an event is being accepted for it', async (t) => {
    for (const [way, newEvents] of Object.entries(waysOf(''))) {
        const own = await emptyBench();
        const isOwned = newEvents.some(({ owner }) => owner !== undefined);
        const { id } = await own.addExporter(isOwned ? { owner: 'ours' } : {});
        const changed = meanwhile(
            pool,
            (tx) => own.deliveries.accept(waysOf(id)[way] as readonly NewEvent[], { tx }),
            () => own.exporters.update(id, { owner: 'theirs' }),
        );
        await t.rejects(changed, { code: 'CONFLICT', field: 'owner' }, way);
        t.equal((await own.deliveries.list({ exporterId: id, limit: 9 })).length, newEvents.length, way);
    }
});

t.test('gives an exporter nothing of before once another owner has it', async (t) => {
    for (const [way, newEvents] of Object.entries(waysOf(''))) {
        const own = await emptyBench();
        const isOwned = newEvents.some(({ owner }) => owner !== undefined);
        const { id } = await own.addExporter(isOwned ? { owner: 'ours' } : {});
        const revision = (await own.exporters.subscribers?.())?.revision as number;
        const accepted = await meanwhile(
            pool,
            (client) => exporters(client).update(id, { owner: 'theirs' }),
            () =>
                own.deliveries.accept(waysOf(id)[way] as readonly NewEvent[], { revision }).catch((error: { code: string }) => error.code),
        );
        t.ok(accepted === 'CONFLICT' || accepted.length === newEvents.length, way);
        t.same(await own.deliveries.list({ exporterId: id, limit: 9 }), [], way);
    }
});

t.test('records a late outcome that is told while the claim is being taken away', async (t) => {
    const own = await emptyBench();
    const lost = await own.claimOne();
    await own.setTime(at(60_000));
    const held = await meanwhile(
        pool,
        (client) => deliveries(client).sweep({ requeueAfter: 1_000_000, limit: 9 }),
        () => own.deliveries.recordOutcomes([success(lost)], RULES),
    );
    t.same(held, [false]);
    t.match(only(await own.deliveries.attempts(lost.deliveryId)), { late: true, outcome: { code: 'delivered' } });
    t.match(await own.deliveries.get(lost.deliveryId), { state: 'delivered', lastCode: 'delivered' });
});

t.test('waits with a replay for the removal of the exporter', async (t) => {
    const own = await emptyBench();
    const held = await own.claimOne();
    await own.deliveries.recordOutcomes([success(held)], RULES);
    const refused = meanwhile(
        pool,
        (client) => client.query('select scanwire.remove_exporter($1, now(), $2)', [held.exporter.id, '{"timings":{}}']),
        () => own.deliveries.replay(held.deliveryId),
    );
    await t.rejects(refused, { code: 'CONFLICT' });
});

t.test('replays also what somebody else had locked for a moment, before it is done', async (t) => {
    for (const state of ['exhausted', 'pending'] as const) {
        const own = await emptyBench();
        const claims = await own.claimMany(6);
        const exporterId = present(claims[0]).exporter.id;
        const next = state === 'pending' ? ({ state, delay: 3_600_000 } as const) : { state };
        await own.record(claims.map((one) => failure(one, 0, { next, health: 'none' })));
        await own.setTime(at(5_000));
        const { plan, advance, get } = present(own.deliveries.replays);
        const { id } = await plan({ id: sampleEvent().id, exporterId, failedSince: at(0), rate: 100 });
        const goesOn = await meanwhile(
            pool,
            (client) => client.query('select from scanwire.deliveries where id = $1 for update', [claims[2]?.deliveryId]),
            () => advance(100),
        );
        t.equal(goesOn, true, state);
        t.match(await get(id), { state: 'running', done: 5 });
        t.equal(await advance(100), false);
        t.match(await get(id), { state: 'done', done: 6, total: 6 });
    }
});

t.test('neither locks nor writes an exporter that goes on faring well', async (t) => {
    const own = await emptyBench();
    const { id } = await own.addExporter();
    const version = async () => only((await pool.query('select xmin, xmax from scanwire.exporters where id = $1', [id])).rows);
    await own.publish({}, {});
    const [first, second] = await own.claimDue({ limit: 2 });
    await own.record([success(present(first))]);
    t.match(await own.exporters.health(id), { lastOutcome: { code: 'delivered', at: at(50) } });

    const before = await version();
    const waited = await meanwhile(
        pool,
        (client) => client.query('update scanwire.exporters set name = name where id = $1', [id]),
        async () => {
            await own.record([success(present(second))], at(5000));
            return only((await pool.query('select xmin, xmax from scanwire.exporters where id = $1', [id])).rows).xmin !== before.xmin;
        },
    );
    t.equal(waited, false);
    t.equal((await pool.query('select from scanwire.last_successes')).rowCount, 1);
    await own.remove(id, at(6000));
    t.equal((await pool.query('select from scanwire.last_successes')).rowCount, 0, 'nothing of it is kept');
});

t.test('lets accept go on while the outcome of an exporter is being recorded', async (t) => {
    const own = await emptyBench();
    const held = await own.claimOne();
    let waited = true;
    await meanwhile(
        pool,
        (client) => deliveries(client).recordOutcomes([failure(held, 9)], RULES),
        async () => {
            await own.publish();
            waited = false;
        },
    );
    t.equal(waited, false);
    t.equal((await own.deliveries.list({ limit: 9 })).length, 2);
});

t.test('claims without touching an index', async (t) => {
    const own = await emptyBench();
    await own.addExporter();
    await own.publish(...Array(5).fill({}));
    const ids = await own.dispatchedIds();
    const client = await pool.connect();
    const updates = async () => {
        const { rows } = await client.query<{ all: number; hot: number }>(
            `select n_tup_upd::integer as all, n_tup_hot_upd::integer as hot from pg_stat_xact_user_tables where relname = 'deliveries'`,
        );
        return only(rows);
    };

    await client.query('begin');
    const before = await updates();
    await new WebhookBench({ ...own, deliveries: deliveries(client), setTime: (time) => own.setTime(time) }).claim(ids);
    const after = await updates();
    await client.query('rollback');
    client.release();
    t.same([after.all - before.all, after.hot - before.hot], [5, 5]);
});

t.test('writes the exporter row once a second while all goes well', async (t) => {
    const own = await emptyBench();
    const claims = (await own.claimMany(3)).map((one) => [success(one)]);
    const version = async () => (await pool.query('select xmin, xmax, ctid from scanwire.exporters')).rows;
    const before = await version();
    await own.record(claims[0] ?? [], at(0));
    const noted = await version();
    t.notSame(noted, before);
    await own.record(claims[1] ?? [], at(999));
    t.same(await version(), noted);
    await own.record(claims[2] ?? [], at(1000));
    t.notSame(await version(), noted);
});

t.test('is unavailable when the database cannot be reached', async (t) => {
    const { default: pg } = await import('pg');
    const pool = new pg.Pool({ connectionString: 'postgres://nobody@127.0.0.1:1/none' });
    const { exporters, deliveries } = postgresWebhooks({ pool });
    await t.rejects(exporters.list(), { code: 'UNAVAILABLE' });
    await t.rejects(deliveries.dispatch(window), { code: 'UNAVAILABLE' });
    await pool.end();
    await t.rejects(deliveries.dispatch(window), { code: 'UNAVAILABLE' });
});
