import { setTimeout } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { redisQueue } from '../../adapters/bullmq/index.ts';
import { until } from '../../adapters/contract/assertions.ts';
import type { DeliveryJob } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { type RedisServer, redisSentinel, redisServer } from '../support/redis-server.ts';
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.ts';

/** How long a silent connection may go unnoticed, in ms: by the clock, since the client of Redis counts by timers of its own. */
const NOTICED_WITHIN = 30_000;
/** The longest time for which a connection of a worker that has nothing to do waits for its server. */
const IDLE = 22_000;

const job = (deliveryId: string): DeliveryJob => ({
    deliveryId,
    collector: 'default',
    attempt: 1,
    singleAttempt: false,
    reservation: null,
});

/** Resolves with true once it holds, with false when it did not in time. */
async function withinTime(holds: () => boolean | Promise<boolean>): Promise<boolean> {
    return await until(holds, NOTICED_WITHIN).then(
        () => true,
        () => false,
    );
}

/** The only worker of a queue, which reaches its server over a proxy; what the queue is filled by does not. */
async function worker(t: Test, { url }: RedisServer, prefix: string) {
    const { hostname, port } = new URL(url);
    const proxy = await tcpProxy({ host: hostname, port: Number(port) });
    const options = { prefix, onWarning: () => undefined };
    const host = redisQueue({ url, ...options });
    const queue = redisQueue({ url: `redis://127.0.0.1:${proxy.port}`, ...options });
    const seen: string[] = [];
    await Promise.all([host.ready(), queue.ready()]);
    const handler = async ({ deliveryId }: DeliveryJob): Promise<void> => void seen.push(deliveryId);
    const { close } = await queue.work('default', handler, { concurrency: 10, onError: () => undefined });
    t.teardown(async () => {
        proxy.reset();
        await close();
        await Promise.all([host.close(), queue.close()]);
        await proxy.close();
    });
    await host.add([job('before')]);
    t.ok(await withinTime(() => seen.includes('before')), `${prefix} works`);
    return { host, queue, proxy, seen };
}

/** After its connections were silenced in this way, the worker takes jobs again, and its process adds some. */
async function goesOn(t: Test, redis: RedisServer, way: 'silence' | 'halve'): Promise<void> {
    const { host, queue, proxy, seen } = await worker(t, redis, way);
    (proxy[way] as TcpProxy['silence'])();
    await host.add([job('after')]);
    const adds = (): Promise<boolean> =>
        queue.add([job('added')]).then(
            () => true,
            () => false,
        );
    const [worked, added] = await Promise.all([withinTime(() => seen.includes('after')), withinTime(adds)]);
    t.ok(worked, `${way}: a worker goes on`);
    t.ok(added, `${way}: so does what adds jobs`);
}

/** The ids that the server gives the connections that it has. */
async function connections(redis: RedisServer): Promise<ReadonlySet<string>> {
    const list = await redis.command('CLIENT LIST');
    return new Set(Array.from(list.matchAll(/^id=(\d+)(?=.* cmd=(?!client))/gm), ([, id]) => id as string));
}

// Most of their time is silence.
t.jobs = 3;

t.test('connections on which nothing comes any more are noticed and replaced', { timeout: 100_000 }, async (t) => {
    const redis = await redisServer(t.testdir(), ['--maxmemory-policy', 'noeviction']);
    t.teardown(() => redis.kill());
    await Promise.all([goesOn(t, redis, 'silence'), goesOn(t, redis, 'halve')]);
});

t.test('those of a worker that has nothing to do, and of a host that adds nothing, are kept', { timeout: 100_000 }, async (t) => {
    const redis = await redisServer(t.testdir(), ['--maxmemory-policy', 'noeviction']);
    t.teardown(() => redis.kill());
    await worker(t, redis, 'idle');
    let before: ReadonlySet<string> = new Set();
    let after = await connections(redis);
    // BullMQ makes the one that waits anew where its answer is a second late, as on a busy machine.
    for (let rounds = 0; rounds < 3 && [...after].join() !== [...before].join(); rounds += 1) {
        before = after;
        await setTimeout(IDLE);
        after = await connections(redis);
    }
    t.strictSame(after, before);
    t.ok(before.size > 3, 'two that add, and of the worker the one that waits and the other');
});

t.test('a Sentinel that does not answer is passed over', { timeout: 100_000 }, async (t) => {
    const folder = t.testdir();
    const redis = await redisServer(folder, ['--maxmemory-policy', 'noeviction']);
    const port = await redisSentinel(t, folder, 'primary', redis);
    const proxy = await tcpProxy({ host: '127.0.0.1', port });
    proxy.silenceAll();
    const options = { prefix: 'named', onWarning: () => undefined };
    const host = redisQueue({ url: redis.url, ...options });
    const queue = redisQueue({ url: `redis+sentinel://127.0.0.1:${proxy.port},127.0.0.1:${port}/primary`, ...options });
    const seen: string[] = [];
    const handler = async ({ deliveryId }: DeliveryJob): Promise<void> => void seen.push(deliveryId);
    const { close } = await queue.work('default', handler, { concurrency: 10, onError: () => undefined });
    t.teardown(async () => {
        await close();
        await Promise.all([host.close(), queue.close()]);
        await proxy.close();
        await redis.kill();
    });
    await host.ready();
    await host.add([job('named')]);
    t.ok(await withinTime(() => seen.includes('named')));
});
