import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { ownCheckout } from '../../bench/checkout.ts';
import { investigation } from '../../bench/contenders/investigation.ts';
import { securely } from '../../bench/overhead.ts';
import { background } from '../../bench/processes.ts';
import { emptyStore } from '../../bench/sender-store.ts';
import { type HostOptions, withSender } from '../../bench/senders.ts';
import { percentilesOf, steady } from '../../bench/steady.ts';
import { countOf, DELIVERED } from '../support/sender-rows.ts';

t.test('the floor stores, sends and finishes what is published', async (t) => {
    await withSender({ checkout: await ownCheckout(), kind: 'floor' }, async (sender) => {
        await sender.burst(60);
        await sender.finished(60);
        t.equal(await countOf(sender, 'events'), 60);
        t.equal(await countOf(sender, `deliveries where state = 'delivered'`), 60);
        t.equal(await countOf(sender, 'attempts'), 60);

        await sender.burst(50, { publishers: 1, perCall: 20 });
        await sender.finished(50);
        t.equal(await countOf(sender, 'events'), 110);
        t.equal(await countOf(sender, `deliveries where state = 'delivered'`), 110);
    });
});

t.test('serve sends to each exporter, and latencies are of the last arrival', async (t) => {
    await withSender({ checkout: await ownCheckout(), kind: 'serve', exporters: 3 }, async (sender) => {
        const { latencies, seconds } = await steady(sender, 50, 5, 3);
        await sender.recorded();
        t.equal(latencies.length, 5);
        t.ok(latencies.every((latency) => latency > 0));
        t.ok(seconds >= 4 / 50);
        t.equal(await countOf(sender, DELIVERED), 15);

        const [events, attempts] = [await countOf(sender, 'scanwire.events'), await countOf(sender, 'scanwire.attempts')];
        await sender.store.keep(40);
        t.equal(await countOf(sender, DELIVERED), 55);
        t.equal(await countOf(sender, 'scanwire.events'), events + 40);
        t.equal(await countOf(sender, 'scanwire.attempts'), attempts + 40);
        t.equal(await countOf(sender, `scanwire.events where body like '%investigationId%'`), 45);

        await sender.store.addUnvacuumed(4);
        await sender.finished(4 * 3);
        t.equal(await countOf(sender, DELIVERED), 67);
        await sender.store.addFailed(2);
        t.equal(await countOf(sender, `scanwire.deliveries where state = 'exhausted'`), 6);
        const [exporter] = await sender.administer<readonly { id: string }[]>('GET', '/exporters');
        await sender.administer('POST', '/replays', { exporterId: exporter?.id, failedSince: new Date(0).toISOString() });
        await until(async () => (await countOf(sender, DELIVERED)) === 69);
        t.equal((await sender.arrived(0)).size, 0, 'what is replayed counts for nobody');

        const unvacuumed = `pg_class where oid = 'scanwire.deliveries'::regclass and 'autovacuum_enabled=off' = any (reloptions)`;
        t.equal(await countOf(sender, unvacuumed), 1);
    });
});

t.test('an event in a transaction comes when it is committed', async (t) => {
    await withSender({ checkout: await ownCheckout(), kind: 'servers' }, async (sender) => {
        const id = randomUUID();
        const published = Number(process.hrtime.bigint() / 1000n);
        const committed = await sender.publishInTransaction(investigation(id), 60);
        const arrivals = await sender.finished(1, { times: true });
        t.ok(committed - published >= 60_000);
        t.ok(Number(arrivals.get(id)) - published >= 60_000);

        await sender.publishInTransaction(null, 0);
        t.equal(await countOf(sender, DELIVERED), 1);
    });
});

t.test('what is published in bulk goes to its owners, and is watched', async (t) => {
    const host: HostOptions = { owners: 3, watched: ['metrics', 'spans'] };
    await withSender({ checkout: await ownCheckout(), kind: 'servers', exporters: 3, host }, async (sender) => {
        await sender.burst(9, { publishers: 1, perCall: 4 });
        await sender.finished(9);
        t.equal(await countOf(sender, DELIVERED), 9);
        t.equal(await countOf(sender, `(select exporter_id from ${DELIVERED} group by exporter_id having count(*) = 3) d`), 3);
        t.equal(await countOf(sender, 'scanwire.traces'), 9);
    });
});

t.test('each event has a key of its own, and goes through a proxy to who asks for a certificate', async (t) => {
    const checkout = await ownCheckout();
    const proxy = await background(checkout, 'proxy');
    t.teardown(() => proxy.stop());
    const { mutual } = await securely();
    const settings = { ...mutual.host?.settings, proxy: { url: `http://127.0.0.1:${proxy.firstLine}` } };
    await withSender({ checkout, kind: 'servers', ...mutual, host: { idempotencyKeys: true, settings } }, async (sender) => {
        await sender.burst(7);
        await sender.finished(7);
        t.equal(await countOf(sender, DELIVERED), 7);
        t.equal(await countOf(sender, 'scanwire.idempotency_keys'), 7);
    });
});

t.test('a paused sender keeps what it takes', async (t) => {
    const host: HostOptions = { paused: true, settings: { name: 'slow', format: 'slack' } };
    await withSender({ checkout: await ownCheckout(), kind: 'servers', host }, async (sender) => {
        await sender.burst(20, { publishers: 2, perCall: 10 });
        t.equal(await countOf(sender, `scanwire.deliveries where state = 'pending'`), 20);
        t.equal(await countOf(sender, `scanwire.exporters where name = 'slow' and format = 'slack'`), 1);
        t.equal((await sender.arrived(0)).size, 0);
    });
    await withSender({ checkout: await ownCheckout(), kind: 'floor', host }, async (sender) => {
        await sender.burst(20, { publishers: 2, perCall: 10 });
        t.equal(await countOf(sender, `deliveries where state = 'queued'`), 20);
        t.equal((await sender.arrived(0)).size, 0);
    });
});

t.test('what scripts call in Redis is no command of a client', async (t) => {
    const store = await emptyStore({ redis: 'own' });
    const client = new Redis(store.urls.REDIS_URL ?? '');
    try {
        await client.ping();
        const calls = await store.clientCalls(async () => {
            await client.set('a', '1');
            await client.eval(`redis.call('incr', 'a') redis.call('incr', 'a') return 1`, 0);
        });
        t.strictSame(calls, { redis: 2 });
    } finally {
        client.disconnect();
        await store.remove();
    }
});

t.test('percentiles are of the sorted latencies', (t) => {
    const latencies = Array.from({ length: 100 }, (_, index) => 100 - index);
    t.strictSame(percentilesOf(latencies), { p50: 51, p95: 96, p99: 100 });
    t.end();
});
