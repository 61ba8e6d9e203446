import { randomBytes } from 'node:crypto';
import t from 'tap';
import { redisQueue } from '../../adapters/bullmq/index.ts';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryWebhooks } from '../../adapters/memory/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { newProgress, outcomeOf } from '../../lib/webhooks/outcome.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';
import { redisServer } from '../support/redis-server.ts';

const quiet = { onWarning: () => {} };

t.test('a queue says that its server was emptied, or came back', async (t) => {
    const redis = await redisServer(t.testdir());
    const queues = [redisQueue({ url: redis.url, ...quiet }), redisQueue({ url: redis.url, ...quiet })] as const;
    t.teardown(async () => {
        await Promise.all(queues.map((queue) => queue.close()));
        await redis.kill();
    });
    const [first, second] = queues;
    t.same([await first.lostJobs?.(), await second.lostJobs?.()], [true, false], 'there is nothing in a new one');
    t.same([await first.lostJobs?.(), await second.lostJobs?.()], [false, false]);
    await redis.command('FLUSHALL');
    t.same([await first.lostJobs?.(), await second.lostJobs?.()], [true, true], 'each is told');
    t.same([await first.lostJobs?.(), await second.lostJobs?.()], [false, false]);

    await redis.kill();
    await t.rejects(async () => first.lostJobs?.(), { code: 'UNAVAILABLE' });
    await redis.start();
    let lost: boolean | undefined;
    await until(async () => {
        lost = await first.lostJobs?.().catch(() => undefined);
        return lost !== undefined;
    });
    t.equal(lost, true, 'what was added last may not have been written');
    t.equal(await first.lostJobs?.(), false);
});

t.test('what was in a queue that is emptied is sent without waiting for the time after which a job counts as lost', async (t) => {
    const redis = await redisServer(t.testdir());
    const queue = redisQueue({ url: redis.url, ...quiet });
    const sent: string[] = [];
    const sender = {
        attemptTimeout: 1000,
        send: async ({ body }: { readonly body: Uint8Array }) => {
            sent.push(Buffer.from(body).toString());
            return outcomeOf({ code: 'delivered', status: 204, detail: '', retryAfter: null }, newProgress(), 1);
        },
        close: async () => {},
    };
    const exporter = webhooks({
        ...memoryWebhooks(),
        queue,
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard: egressGuard({ allow: ['127.0.0.0/8'] }),
        sender,
    });
    t.teardown(async () => {
        await exporter.close();
        await queue.close();
        await redis.kill();
    });
    await exporter.start();
    const created = await exporter.exporters.create({ url: 'http://127.0.0.1:9/' });
    void exporter.exporters.start(created.exporter.id);
    await until(async () => (await exporter.exporters.get(created.exporter.id)).state === 'running');
    const body = {
        timestamp: new Date(),
        title: 't',
        link: 'https://a.example/',
        investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
        investigationRrn: 'rrn:a:b:c:d',
        actors: { users: [], assets: [] },
    };
    await exporter.publish('idr_investigation_created', body);
    await until(async () => (await exporter.deliveries.list()).every(({ state }) => state === 'queued'));

    await redis.command('FLUSHALL');
    await exporter.work(['default']);
    const emptied = performance.now();
    await until(() => sent.length === 2);
    t.ok(performance.now() - emptied < 6000, 'the event and the test, well before the 10 s');
});

t.test('a collector that nobody can have holds nobody up', async (t) => {
    const { memoryQueue } = await import('../../adapters/memory/index.ts');
    const stores = memoryWebhooks();
    const queue = memoryQueue();
    const sender = {
        attemptTimeout: 1000,
        send: async () => outcomeOf({ code: 'delivered', status: 204, detail: '', retryAfter: null }, newProgress(), 1),
        close: async () => {},
    };
    const ring = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
    const exporter = webhooks({ ...stores, queue, keyRing: ring, guard: egressGuard({ allow: [] }), sender });
    t.teardown(async () => {
        await exporter.close();
        await queue.close();
    });
    await exporter.start();
    await exporter.work(['default']);
    const bad = await exporter.exporters.create({ url: 'http://192.0.2.1/', name: 'bad' }).catch(() => null);
    t.equal(bad, null, 'documentation addresses are not called');
    const [one, two] = await Promise.all(
        ['one', 'two'].map((name) => exporter.exporters.create({ url: 'https://receiver.example/', name })),
    );
    await stores.exporters.update(one?.exporter.id ?? '', { collector: 'no/such collector', state: 'running' });
    await stores.exporters.update(two?.exporter.id ?? '', { state: 'running' });
    const body = {
        timestamp: new Date(),
        title: 't',
        link: 'https://a.example/',
        investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
        investigationRrn: 'rrn:a:b:c:d',
        actors: { users: [], assets: [] },
    };
    const { deliveries } = await exporter.publish('idr_investigation_created', body);
    await until(async () => (await exporter.deliveries.list()).every(({ state }) => state === 'delivered' || state === 'exhausted'));
    const ended = await Promise.all(deliveries.map((id) => exporter.deliveries.show(id)));
    t.same(ended.map(({ state }) => state).sort(), ['delivered', 'exhausted']);
    t.match(ended.find(({ state }) => state === 'exhausted')?.history[0]?.outcome?.detail, 'No worker can have the name of its collector');
});
