/** Lists of events whose keys an open transaction of the application has wait for it without the connections of everybody else. */
import type pg from 'pg';
import t, { type Test } from 'tap';
import type { EventToPublish } from '../../lib/webhooks/events/publisher.ts';
import { within } from '../../lib/within.ts';
import { investigation } from '../support/investigation.ts';
import { orderedHost } from '../support/ordered-host.ts';

const KIND = 'idr_investigation_created';
/** The transaction of the application takes one of them. */
const CONNECTIONS = 5;
/** Far below what a statement is waited for. */
const AT_ONCE = { timeout: 3_000 };

type Keys = Pick<EventToPublish, 'idempotencyKey' | 'orderKey'>;

async function host(t: Test) {
    const { engine, pool } = await orderedHost(t, CONNECTIONS);
    const publishAll = (keys: readonly Keys[], tx?: pg.PoolClient): Promise<readonly string[]> => {
        const events = keys.map((given) => ({ kind: KIND, body: { ...investigation }, ...given }));
        const published = engine.publishAll(events, tx === undefined ? {} : { tx });
        // It may be refused while others are waited for.
        published.catch(() => undefined);
        return published.then((all) => all.map(({ eventId }) => eventId));
    };

    return {
        engine,
        publishAll,

        /** Runs while a transaction has published with the keys; resolves with its events. */
        async whileOpen(keys: readonly Keys[], run: () => Promise<void>): Promise<readonly string[]> {
            const tx = await pool.connect();
            await tx.query('begin');
            try {
                const ids = await publishAll(keys, tx);
                await run();
                return ids;
            } finally {
                await tx.query('commit');
                tx.release();
            }
        },
    };
}

t.test('ten lists that wait for an idempotency key leave connections to others, and each is stored as a whole', async (t) => {
    const { engine, publishAll, whileOpen } = await host(t);
    const lists: Promise<readonly string[]>[] = [];
    const [ofKey] = await whileOpen([{ idempotencyKey: 'job' }], async () => {
        for (let index = 0; index < 10; index += 1) {
            lists.push(publishAll([{ idempotencyKey: `before ${index}` }, { idempotencyKey: 'job' }, {}]));
        }
        await within(engine.publish(KIND, investigation), AT_ONCE);
        await within(engine.publish(KIND, investigation, { idempotencyKey: 'other' }), AT_ONCE);
        await within(engine.publish(KIND, investigation, { orderKey: 'a' }), AT_ONCE);
        await within(publishAll([{ idempotencyKey: 'free' }, { orderKey: 'b' }]), AT_ONCE);
        const before = await engine.publish(KIND, investigation, { idempotencyKey: 'before 9' });
        t.type(before.eventId, 'string', 'nothing of a list that waits is stored');
    });
    const stored = await within(Promise.all(lists), AT_ONCE);
    t.strictSame(
        stored.map(([, second]) => second),
        Array(10).fill(ofKey),
        'each has the event of the transaction',
    );
    t.equal(new Set(stored.flat()).size, 21, 'and events of its own');
});

t.test('so do lists that wait for an order key', async (t) => {
    const { engine, publishAll, whileOpen } = await host(t);
    const lists: Promise<readonly string[]>[] = [];
    await whileOpen([{ orderKey: 'a' }], async () => {
        for (let index = 0; index < 10; index += 1) {
            lists.push(publishAll([{ orderKey: `before ${index}` }, { orderKey: 'a' }]));
        }
        await within(engine.publish(KIND, investigation), AT_ONCE);
        await within(publishAll([{ orderKey: 'b' }, { orderKey: 'c' }]), AT_ONCE);
    });
    t.equal(new Set((await within(Promise.all(lists), AT_ONCE)).flat()).size, 20);
});

t.test('a list whose key stands for another event is refused as a whole, however long it has waited', async (t) => {
    const { engine, publishAll, whileOpen } = await host(t);
    let refused: Promise<unknown> = Promise.resolve();
    await whileOpen([{ idempotencyKey: 'job' }], async () => {
        const events = [{ idempotencyKey: 'first' }, { idempotencyKey: 'job' }];
        const body = { ...investigation, title: 'Another' };
        refused = engine.publishAll(events.map((keys) => ({ kind: KIND, body, ...keys })));
        refused.catch(() => undefined);
        await within(publishAll([{ idempotencyKey: 'free' }]), AT_ONCE);
    });
    await t.rejects(refused, { code: 'CONFLICT' });
    await t.resolves(engine.publish(KIND, investigation, { idempotencyKey: 'first' }), 'its other key is free');
});
