import { randomBytes } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import t, { type Test } from 'tap';
import { redisQueue } from '../../adapters/bullmq/index.ts';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryWebhooks } from '../../adapters/memory/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import type { DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { inlineCommand } from '../support/ping-redis.ts';
import { redisCluster, redisSentinel, redisServer } from '../support/redis-server.ts';

const TESTS = 20;

/** Every delivery goes out once, over the first connection of the queue and without an error. */
async function assertDelivers(t: Test, queue: DeliveryQueue): Promise<void> {
    const receiver = await countingReceiver(t, (response) => response.writeHead(204).end());
    const stores = memoryWebhooks();
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const errors: Error[] = [];
    const own = webhooks({
        ...stores,
        queue,
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: httpSender({ guard }),
        onError: (error) => errors.push(error),
    });
    await own.start();
    await own.work(['default', 'edge']);
    for (const collector of ['default', 'edge']) {
        const { exporter } = await own.exporters.create({ url: receiver.url, collector });
        await own.exporters.start(exporter.id);
        await Promise.all(Array.from({ length: TESTS }, () => own.exporters.test(exporter.id)));
    }
    await until(async () => (await stores.deliveries.list({ limit: 100, state: 'delivered' })).length === 2 * (TESTS + 1));
    await own.close();
    await queue.close();
    t.equal(receiver.kinds.length, 2 * (TESTS + 1));
    t.strictSame(errors, []);
}

const quiet = { onWarning: () => {} };

t.test('delivers through a Redis Cluster, by URL or as a client of the application', async (t) => {
    const ports = await redisCluster(t, t.testdir());
    const url = `redis+cluster://${ports.map((port) => `127.0.0.1:${port}`).join(',')}`;
    await assertDelivers(t, redisQueue({ url, ...quiet }));

    const client = new Cluster([{ host: '127.0.0.1', port: ports[0] }]);
    t.teardown(() => client.disconnect());
    await assertDelivers(t, redisQueue({ connection: client, ...quiet }));
    t.equal(await client.ping(), 'PONG', 'it stays open');
});

t.test('notices that connections to a Redis Cluster were lost, after which jobs may be, where nobody asked meanwhile', async (t) => {
    const ports = await redisCluster(t, t.testdir());
    const queue = redisQueue({ url: `redis+cluster://127.0.0.1:${ports[0]}`, ...quiet });
    t.teardown(() => queue.close());
    t.same([await queue.hasLostJobs?.(), await queue.hasLostJobs?.()], [true, false]);
    await Promise.all(ports.map((port) => inlineCommand(port, 'CLIENT KILL TYPE normal')));
    let lost: boolean | undefined;
    await until(async () => {
        lost = await queue.hasLostJobs?.().catch(() => undefined);
        return lost !== undefined;
    });
    t.equal(lost, true);
});

t.test('delivers through the Redis that a Sentinel names, by URL, as a client or as its options', async (t) => {
    const folder = t.testdir();
    const redis = await redisServer(folder);
    t.teardown(() => redis.kill());
    const port = await redisSentinel(t, folder, 'jobs', redis);
    await assertDelivers(t, redisQueue({ url: `redis+sentinel://127.0.0.1:1,127.0.0.1:${port}/jobs/2`, ...quiet }));
    t.match(await redis.command('INFO keyspace'), /db2:keys=/, 'in the database that the URL names');

    const sentinels = [{ host: '127.0.0.1', port }];
    await assertDelivers(t, redisQueue({ connection: { sentinels, name: 'jobs' }, ...quiet }));
    const client = new Redis({ sentinels, name: 'jobs' });
    t.teardown(() => client.disconnect());
    await assertDelivers(t, redisQueue({ connection: client, ...quiet }));
});

t.test('says which fault it is that a cluster refuses the password, or that no Sentinel answers', async (t) => {
    const ports = await redisCluster(t, t.testdir());
    await Promise.all(ports.map((port) => inlineCommand(port, 'CONFIG SET requirepass secret')));
    const queue = redisQueue({ url: `redis+cluster://:hunter2@127.0.0.1:${ports[0]}`, ...quiet });
    t.teardown(() => queue.close());
    await t.rejects(queue.ready(), { code: 'MISCONFIGURED', message: 'Redis refused the user or the password' });
    await assertDelivers(t, redisQueue({ url: `redis+cluster://:secret@127.0.0.1:${ports[0]}`, ...quiet }));
    const nowhere = redisQueue({ url: 'redis+sentinel://127.0.0.1:1/jobs', ...quiet });
    t.teardown(() => nowhere.close());
    await t.rejects(nowhere.ready(), { code: 'UNAVAILABLE' });
});
