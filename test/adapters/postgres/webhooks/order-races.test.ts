import t from 'tap';
import { only, present } from '../../../../adapters/contract/assertions.ts';
import {
    at,
    BEGIN_WITHIN,
    forAll,
    holderOf,
    RULES,
    sampleEvent,
    sampleOutcome,
    success,
    WebhookBench,
} from '../../../../adapters/contract/webhooks/fixture.ts';
import { deliveries } from '../../../../adapters/postgres/webhooks/deliveries.ts';
import { exporters } from '../../../../adapters/postgres/webhooks/exporters.ts';
import type { Acceptance } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { NewEvent } from '../../../../lib/webhooks/events/new-event.ts';
import type { StoredExporter } from '../../../../lib/webhooks/exporters/exporter.ts';
import { migratedPool } from '../../../support/migrated-database.ts';
import { seeded } from '../../../support/seeded.ts';
import { emptyWebhookStores } from './empty-webhook-stores.ts';
import { meanwhile } from './meanwhile.ts';

const pool = await migratedPool(t, { max: 20 });

const HAND_OUT = { window: 10, breakerAfter: RULES.after, beginWithin: BEGIN_WITHIN };

async function orderedBench(settings: Partial<StoredExporter> = {}): Promise<WebhookBench> {
    const empty = emptyWebhookStores(pool);
    await empty.start();
    const bench = new WebhookBench(empty);
    await bench.addExporter({ ordered: true, ...settings });
    await bench.setTime(at(0));
    return bench;
}

function keyed(orderKey: string): NewEvent {
    return { ...forAll(sampleEvent()), orderKey };
}

async function acceptOne(bench: WebhookBench, key = 'a'): Promise<Acceptance> {
    return only(await bench.deliveries.accept([keyed(key)], { handOut: HAND_OUT }));
}

t.test('puts what is accepted while a transaction has its key after what that accepts', async (t) => {
    const bench = await orderedBench();
    let first: readonly string[] = [];
    const second = await meanwhile(
        pool,
        async (tx) => {
            first = only(await bench.deliveries.accept([keyed('a')], { tx })).deliveries;
        },
        async () => {
            t.equal((await acceptOne(bench, 'b')).handedOut.length, 1, 'another key waits for nobody');
            t.equal(only(await bench.deliveries.accept([forAll(sampleEvent())])).deliveries.length, 1, 'nor does what has no key');
            return await acceptOne(bench);
        },
    );
    t.same(second.handedOut, []);
    t.ok((await bench.dispatchedIds()).includes(present(first[0])));
    t.notOk((await bench.dispatchedIds()).includes(present(second.deliveries[0])));
});

t.test('sees that nobody would wait without the locks', async (t) => {
    const bench = await orderedBench();
    const declaration = 'scanwire.enter_order(keys text[], deciding boolean) returns void';
    const { rows } = await pool.query("select pg_get_functiondef('scanwire.enter_order'::regproc) as sound");
    await pool.query(`create or replace function ${declaration} language plpgsql as 'begin end'`);
    const second = await meanwhile(
        pool,
        (tx) => bench.deliveries.accept([keyed('a')], { tx }),
        () => acceptOne(bench),
    );
    await pool.query(rows[0].sound);
    t.equal(second.handedOut.length, 1, 'before what was accepted first');
});

for (const keys of [1, 150]) {
    t.test(`waits for a transaction that has accepted events of ${keys} keys`, async (t) => {
        const bench = await orderedBench();
        const names = Array.from({ length: keys }, (_, number) => `key ${number}`);
        const second = await meanwhile(
            pool,
            (tx) => bench.deliveries.accept(names.map(keyed), { tx }),
            () => acceptOne(bench, 'key 0'),
        );
        t.same(second.handedOut, []);
    });
}

t.test('leaves out what waits for a transaction, where it is told to', async (t) => {
    const bench = await orderedBench();
    const acceptAll = async (keys: readonly (string | undefined)[], lockTimeout: number) => {
        const events = keys.map((key) => (key === undefined ? forAll(sampleEvent()) : keyed(key)));
        const accepted = await bench.deliveries.accept(events, { handOut: HAND_OUT, lockTimeout });
        t.strictSame(
            accepted.map(({ eventId }) => eventId),
            events.map(({ event }) => event.id),
        );
        return accepted.map(({ locked = false, deliveries, handedOut }) => [locked, deliveries.length, handedOut.length]);
    };
    const [taken, leftOut, waits] = [
        [false, 1, 1],
        [true, 0, 0],
        [false, 1, 0],
    ];
    const whileOpen = async (keys: readonly string[], others: () => Promise<void>): Promise<void> => {
        const tx = await pool.connect();
        await tx.query('begin');
        await bench.deliveries.accept(keys.map(keyed), { tx });
        await others();
        await tx.query('commit');
        tx.release();
    };
    await whileOpen(['a', 'b'], async () => {
        t.same(await acceptAll(['c', 'a', undefined, 'd', 'c', 'b', 'a'], 0), [taken, leftOut, taken, taken, waits, leftOut, leftOut]);
        t.same(await acceptAll(['a', 'b'], 0), [leftOut, leftOut]);
        t.same(await acceptAll(['e', 'a'], 50), [leftOut, leftOut], 'all of them, after a while');
    });
    // What the transaction has left is due, and has the place of others.
    t.same(await acceptAll(['a', 'e', undefined], 0), [waits, waits, waits]);
    t.same(await acceptAll(['a', 'f'], 1_000), [waits, waits]);

    const many = Array.from({ length: 150 }, (_, number) => `key ${number}`);
    await whileOpen(many, async () => {
        t.same(await acceptAll(['g', undefined], 0), [leftOut, leftOut], 'all of them, where a transaction has that many');
    });
    const { rows } = await pool.query(
        'select count(*)::integer as count, count(distinct order_key)::integer as keys from scanwire.deliveries',
    );
    t.same(rows, [{ count: 2 + 4 + 3 + 2 + 150, keys: 6 + 150 }], 'and nothing of what was left out is there');
});

for (const isolation of ['read committed', 'repeatable read', 'serializable']) {
    t.test(`lets none wait behind another that ends before a transaction does, ${isolation}`, async (t) => {
        const bench = await orderedBench();
        const first = holderOf(only((await acceptOne(bench)).handedOut));
        let second: readonly string[] = [];
        await meanwhile(
            pool,
            async (tx) => {
                second = only(await bench.deliveries.accept([keyed('a')], { tx })).deliveries;
            },
            async () => {
                await bench.record([success(first, { begunAt: at(1) })], at(10));
                t.same(await bench.dispatchedIds({ now: at(20) }), []);
            },
            isolation,
        );
        t.same(await bench.dispatchedIds({ now: at(20) }), second);
    });
}

t.test('gives the turn to what is accepted while the one before it ends', async (t) => {
    const bench = await orderedBench();
    const first = holderOf(only((await acceptOne(bench)).handedOut));
    await bench.setTime(at(10));
    const second = await meanwhile(
        pool,
        (client) => deliveries(client).recordOutcomes([success(first, { begunAt: at(1) })], RULES),
        () => acceptOne(bench),
    );
    const late = await bench.dispatchedIds({ now: at(20) });
    t.same([...second.handedOut.map(({ deliveryId }) => deliveryId), ...late], second.deliveries);
});

t.test('gives the turn to what would be handed out while the one before it ends', async (t) => {
    const bench = await orderedBench();
    const first = holderOf(only((await acceptOne(bench)).handedOut));
    const { deliveries: second } = only(await bench.deliveries.accept([keyed('a')]));
    await bench.setTime(at(10));
    const handedOut = await meanwhile(
        pool,
        (client) => deliveries(client).recordOutcomes([success(first, { begunAt: at(1) })], RULES),
        () => bench.dispatchedIds({ now: at(10) }),
    );
    t.same([...handedOut, ...(await bench.dispatchedIds({ now: at(20) }))], second);
});

t.test('holds no key by what fails for good while it is said to hold none any more', async (t) => {
    const bench = await orderedBench({ afterExhausted: 'hold' });
    const { id } = only(await bench.exporters.list());
    const first = holderOf(only((await acceptOne(bench)).handedOut));
    const { deliveries: second } = await acceptOne(bench);
    await bench.setTime(at(10));
    const failed = success(first, {
        begunAt: at(1),
        outcome: sampleOutcome('connect_refused'),
        next: { state: 'exhausted' },
        health: 'none',
    });
    await meanwhile(
        pool,
        (client) => exporters(client).update(id, { afterExhausted: 'skip' }),
        () => bench.deliveries.recordOutcomes([failed], RULES),
    );
    t.same(await dispatchTwice(bench), second);
});

async function dispatchTwice(bench: WebhookBench): Promise<readonly string[]> {
    return [...(await bench.dispatchedIds({ now: at(20) })), ...(await bench.dispatchedIds({ now: at(30) }))];
}

/** Delivers what is due until nothing has been for a while; what fails is due again at once. */
async function work(bench: WebhookBench, sent: string[], random: () => number, isOver: () => boolean): Promise<void> {
    const flying = new Set<string>();
    for (let idle = 0; idle < 20 || !isOver(); ) {
        const { handedOut } = await bench.deliveries.dispatch({ ...HAND_OUT, window: 20, breakerAfter: 1_000_000, limit: 20 });
        idle = handedOut.length === 0 ? idle + 1 : 0;
        for (const one of handedOut) {
            flying.add(one.deliveryId);
        }
        const outcomes = handedOut.map((one) => {
            const fails = random() < 0.2;
            if (!fails) {
                sent.push(one.deliveryId);
            }
            const overrides = { begunAt: at(0), ...(fails && { next: { state: 'pending', delay: 0 } as const, health: 'none' as const }) };
            return success(holderOf(one), overrides);
        });
        await bench.deliveries.recordOutcomes(outcomes, { ...RULES, after: 1_000_000 });
    }
}

t.test('delivers each key in the order of acceptance, whoever publishes and dispatches at once', async (t) => {
    const bench = await orderedBench();
    const random = seeded(11);
    const sent: string[] = [];
    let publishers = 6;
    const publish = async (): Promise<void> => {
        for (let round = 0; round < 15; round += 1) {
            const keys = Array.from({ length: 1 + Math.floor(random() * 4) }, () => `key ${Math.floor(random() * 5)}`);
            if (random() < 0.5) {
                const accepted = await bench.deliveries.accept(keys.map(keyed), { handOut: HAND_OUT });
                const handedOut = accepted.flatMap((one) => one.handedOut);
                sent.push(...handedOut.map(({ deliveryId }) => deliveryId));
                await bench.deliveries.recordOutcomes(
                    handedOut.map((one) => success(holderOf(one), { begunAt: at(0) })),
                    RULES,
                );
                continue;
            }
            const tx = await pool.connect();
            await tx.query('begin');
            await bench.deliveries.accept(keys.map(keyed), { tx });
            await tx.query('select pg_sleep($1)', [random() / 100]);
            await tx.query(random() < 0.2 ? 'rollback' : 'commit');
            tx.release();
        }
        publishers -= 1;
    };
    const isOver = (): boolean => publishers === 0;
    await Promise.all([
        ...Array.from({ length: publishers }, publish),
        work(bench, sent, random, isOver),
        work(bench, sent, random, isOver),
    ]);

    const { rows } = await pool.query<{ id: string; order_key: string; state: string }>(
        'select id, order_key, state from scanwire.deliveries order by seq',
    );
    t.same(new Set(rows.map(({ state }) => state)), new Set(['delivered']));
    for (const key of new Set(rows.map(({ order_key }) => order_key))) {
        const accepted = rows.filter(({ order_key }) => order_key === key).map(({ id }) => id);
        t.same(
            sent.filter((id) => accepted.includes(id)),
            accepted,
            key,
        );
    }
    t.same((await pool.query('select from scanwire.order_places')).rows.length, 0);
});
