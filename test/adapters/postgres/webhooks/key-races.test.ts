import { randomUUID } from 'node:crypto';
import type { PoolClient } from 'pg';
import t from 'tap';
import { only, present, until } from '../../../../adapters/contract/assertions.ts';
import { forAll, sampleEvent, WebhookBench } from '../../../../adapters/contract/webhooks/fixture.ts';
import type { NewEvent } from '../../../../lib/webhooks/events/new-event.ts';
import { migratedPool } from '../../../support/migrated-database.ts';
import { emptyWebhookStores } from './empty-webhook-stores.ts';

const pool = await migratedPool(t, { max: 6 });

const IDEMPOTENCY = { key: 'of the caller', digest: 'of the body' };
/** Of an event that was never stored. */
const LEFT_BEHIND = `insert into scanwire.idempotency_keys (owner, key, event_id, digest) values ('', $1, $2, 'of before')`;

async function emptyBench(): Promise<WebhookBench> {
    const empty = emptyWebhookStores(pool);
    await empty.start();
    return new WebhookBench(empty);
}

const keyed = (more: Partial<NewEvent> = {}): NewEvent => ({
    event: sampleEvent(),
    idempotency: IDEMPOTENCY,
    recipients: { types: ['investigation'] },
    ...more,
});

const leaveBehind = (client: { query(text: string, values: unknown[]): Promise<unknown> }) =>
    client.query(LEFT_BEHIND, [IDEMPOTENCY.key, randomUUID()]);

async function untilWaits(kind: string): Promise<void> {
    await until(async () => {
        const { rows } = await pool.query(
            'select from pg_locks l join pg_stat_activity a using (pid) where a.datname = current_database() and not l.granted and l.locktype = $1',
            [kind],
        );
        return rows.length > 0;
    });
}

async function eventsOfKeys(): Promise<readonly unknown[]> {
    const { rows } = await pool.query('select event_id as "eventId", digest from scanwire.idempotency_keys');
    return rows;
}

t.test('an exporter that is stopped while a key is waited for gets nothing, and nobody waits for it', async (t) => {
    const own = await emptyBench();
    const { id } = await own.addExporter();
    const holder = await pool.connect();
    await holder.query('begin');
    await leaveBehind(holder);
    const accepting = own.deliveries.accept([keyed()]);
    await untilWaits('transactionid');
    await t.resolves(pool.query('select from scanwire.exporters for update nowait'), 'a removal goes on');
    await pool.query(`update scanwire.exporters set state = 'stopped' where id = $1`, [id]);
    await holder.query('commit');
    holder.release();
    t.same(only(await accepting).deliveries, []);
    t.equal((await eventsOfKeys()).length, 1);
});

t.test('a key that retention removes while it is looked at is taken', async (t) => {
    const own = await emptyBench();
    await own.addExporter();
    await leaveBehind(pool);
    // Between the insertion that met it and the look at it.
    await pool.query(`
        create function public.forget() returns trigger language plpgsql as
            $$ begin delete from scanwire.idempotency_keys where digest = 'of before'; return null; end $$;
        create trigger forgetting after insert on scanwire.idempotency_keys for each statement execute function public.forget()`);
    const { eventId } = only(await own.deliveries.accept([keyed()]));
    await pool.query('drop trigger forgetting on scanwire.idempotency_keys');
    t.same(await eventsOfKeys(), [{ eventId, digest: IDEMPOTENCY.digest }]);
});

const LISTS: Readonly<Record<string, (first: NewEvent) => readonly NewEvent[]>> = {
    'one event': (first) => [first],
    'a list': (first) => [first, keyed({ idempotency: { key: randomUUID(), digest: 'x' } })],
    'a list with an order key': (first) => [first, keyed({ idempotency: { key: randomUUID(), digest: 'x' }, orderKey: 'x' })],
};

/** Whoever has met a key waits for a while before looking at it. */
const WAITING = `
create function public.wait_for_gate() returns trigger language plpgsql as
    $$ begin perform pg_advisory_lock(83); perform pg_advisory_unlock(83); return null; end $$;
create trigger waiting after insert on scanwire.idempotency_keys for each statement execute function public.wait_for_gate()`;

/** What comes of an acceptance that has met a key of before, while another transaction does something to the same key and ends. */
async function acceptedMeanwhile<T>(accept: () => Promise<T>, other: (client: PoolClient) => Promise<unknown>): Promise<T> {
    await pool.query(WAITING);
    const client = await pool.connect();
    try {
        await client.query('begin');
        await client.query('select pg_advisory_lock(83)');
        const accepting = accept();
        accepting.catch(() => {});
        await untilWaits('advisory');
        await other(client);
        await client.query('select pg_advisory_unlock(83)');
        await untilWaits('transactionid');
        await client.query('commit');
        return await accepting;
    } finally {
        client.release(true);
        await pool.query('drop trigger waiting on scanwire.idempotency_keys; drop function public.wait_for_gate()');
    }
}

const OUTDATED = { code: 'CONFLICT', field: 'revision' };

/** What becomes of whoever has the key first, in a transaction that stores no event. */
const LOSES: Readonly<Record<string, (client: PoolClient, bench: WebhookBench, first: readonly NewEvent[]) => Promise<unknown>>> = {
    'was refused': async (client, bench, first) => {
        await t.rejects(bench.deliveries.accept(first, { tx: client, revision: -1 }), OUTDATED);
    },
    'left it behind, too': (client) => client.query('update scanwire.idempotency_keys set event_id = $1', [randomUUID()]),
    'removed it': (client) => client.query('delete from scanwire.idempotency_keys'),
};

for (const [name, listOf] of Object.entries(LISTS)) {
    t.test(`a key whose event is gone is taken over once, by ${name}`, async (t) => {
        const own = await emptyBench();
        await own.addExporter();
        await leaveBehind(pool);
        const first = listOf(keyed());
        const [repeated] = await acceptedMeanwhile(
            () => own.deliveries.accept(listOf(keyed())),
            (client) => own.deliveries.accept(first, { tx: client }),
        );
        t.equal(present(repeated).eventId, first[0]?.event.id);
        t.equal(present(repeated).deliveries.length, 1);
    });

    for (const [how, loses] of Object.entries(LOSES)) {
        t.test(`a key is of whoever waited for another that ${how}, by ${name}`, async (t) => {
            const own = await emptyBench();
            await own.addExporter();
            await leaveBehind(pool);
            const waiting = listOf(keyed());
            const [accepted] = await acceptedMeanwhile(
                () => own.deliveries.accept(waiting),
                (client) => loses(client, own, listOf(keyed())),
            );
            t.equal(present(accepted).eventId, waiting[0]?.event.id);
            t.equal(present(accepted).deliveries.length, 1);
            t.strictSame(await own.deliveries.accept([keyed()]), [{ ...accepted, handedOut: [], leftFor: [] }], 'and stays so');
        });

        t.test(`a transaction whose snapshot stays fails behind another that ${how}, by ${name}`, async (t) => {
            const own = await emptyBench();
            await own.addExporter();
            await leaveBehind(pool);
            const tx = await pool.connect();
            await tx.query('begin isolation level repeatable read');
            const accepting = acceptedMeanwhile(
                () => own.deliveries.accept(listOf(keyed()), { tx }),
                (client) => loses(client, own, listOf(keyed())),
            );
            await t.rejects(accepting, { code: '40001' });
            await tx.query('rollback');
            tx.release();
        });
    }

    t.test(`a transaction whose snapshot still has a key that another has given back takes it, by ${name}`, async (t) => {
        const own = await emptyBench();
        await own.addExporter();
        await leaveBehind(pool);
        const tx = await pool.connect();
        await tx.query('begin isolation level repeatable read');
        await tx.query('select from scanwire.idempotency_keys');
        await pool.query('delete from scanwire.idempotency_keys');
        try {
            const [accepted] = await own.deliveries.accept(listOf(keyed()), { tx });
            t.equal(present(accepted).deliveries.length, 1);
        } finally {
            await tx.query('rollback');
            tx.release();
        }
    });

    t.test(`a refusal keeps no key, by ${name}`, async (t) => {
        const own = await emptyBench();
        await own.addExporter();
        const stored = sampleEvent();
        await own.deliveries.accept([{ ...forAll(stored), idempotency: { key: 'of another', digest: 'x' } }]);
        const before = await eventsOfKeys();
        await t.rejects(own.deliveries.accept(listOf(keyed()), { revision: -1 }), OUTDATED);
        t.strictSame(await eventsOfKeys(), before, 'outdated');
        await t.rejects(own.deliveries.accept(listOf(keyed({ event: stored }))), { code: 'CONFLICT' });
        t.strictSame(await eventsOfKeys(), before, 'an event that there is');
        await leaveBehind(pool);
        await t.rejects(own.deliveries.accept(listOf(keyed()), { revision: -1 }), OUTDATED);
        t.strictSame(await eventsOfKeys(), before, 'taken over');
    });
}

t.test('an exporter that is named twice gets one message', async (t) => {
    const own = await emptyBench();
    const { id } = await own.addExporter({ kinds: ['idr_*'] });
    const message = { contentType: 'text/plain', headers: [], body: 'first', failure: null } as const;
    const subscribers = ['first', 'second'].map((body) => ({ exporterId: id, message: { ...message, body } }));
    const { deliveries } = only(await own.deliveries.accept([keyed({ recipients: { types: [], subscribers } })]));
    const { rows } = await pool.query('select delivery_id as id, body from scanwire.delivery_messages');
    t.same(rows, [{ id: only(deliveries), body: 'first' }]);
});
