import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, Socket } from 'node:net';
import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createRedisBackend, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import t, { type Test } from 'tap';
import { redisQueue } from '../../../adapters/bullmq/index.ts';
import { bullmqQueue } from '../../../adapters/bullmq/queue.ts';
import type { BullmqServer } from '../../../adapters/bullmq/worker.ts';
import { until } from '../../../adapters/contract/assertions.ts';
import type { DeliveryJob, DeliveryQueue } from '../../../lib/webhooks/dispatching/delivery-queue.ts';
import { freePort } from '../../support/free-port.ts';
import { type RedisServer, redisServer } from '../../support/redis-server.ts';
import { required } from '../../support/required.ts';
import { tcpProxy } from '../../support/tcp-proxy.ts';

const shared = required('REDIS_URL');
const job = (collector = 'default', attempt = 1): DeliveryJob => ({
    collector,
    deliveryId: randomUUID(),
    attempt,
    singleAttempt: false,
    reservation: null,
});
const quiet = { onWarning: () => {} };

async function ownServer(t: Test, settings: readonly string[] = []): Promise<RedisServer> {
    const redis = await redisServer(t.testdir(), settings);
    t.teardown(() => redis.kill());
    return redis;
}

/** The first byte of a record of a handshake. */
const isClientHello = (data: Buffer): boolean => data[0] === 22;

function closes(t: Test, queue: DeliveryQueue): DeliveryQueue {
    t.teardown(() => queue.close());
    return queue;
}

/** A queue on a server of its own with one worker that notes what it gets. */
async function working(t: Test) {
    const redis = await ownServer(t);
    const queue = redisQueue({ url: redis.url, ...quiet });
    await queue.ready();
    const seen: string[] = [];
    const worker = await queue.work(
        'default',
        async ({ deliveryId }) => {
            seen.push(deliveryId);
        },
        { concurrency: 5 },
    );
    t.teardown(async () => {
        await worker.close();
        await queue.close();
        await redis.kill();
    });
    return { redis, queue, seen };
}

/** Adds until the queue takes it, as the dispatcher would. */
async function addEventually(queue: DeliveryQueue, added: DeliveryJob): Promise<void> {
    await until(() =>
        queue.add([added]).then(
            () => true,
            () => false,
        ),
    );
}

t.test('hands a job to the worker of its collector and to no other', async (t) => {
    const queue = closes(t, redisQueue({ url: shared, prefix: `t-${randomUUID()}`, ...quiet }));
    await queue.ready();
    const seen: [string, DeliveryJob][] = [];
    const workers = await Promise.all(
        ['default', 'emea_2'].map((name) =>
            queue.work(
                name,
                async (job) => {
                    seen.push([name, job]);
                },
                { concurrency: 2 },
            ),
        ),
    );
    const jobs = [job('default'), job('emea_2', 7)];
    await queue.add(jobs);
    await until(() => seen.length === 2);
    t.same(new Map(seen), new Map(jobs.map((job) => [job.collector, job])));
    await Promise.all(workers.map((worker) => worker.close()));
});

t.test('keeps one job for an attempt that is added twice, and only ids in it', async (t) => {
    const prefix = `t-${randomUUID()}`;
    const queue = closes(t, redisQueue({ url: shared, prefix, ...quiet }));
    const redis = new Redis(shared);
    t.teardown(() => redis.disconnect());
    const added = job();
    await queue.add([added, added]);
    await queue.add([added]);
    t.same(await redis.lrange(`${prefix}:scanwire-default:wait`, 0, -1), [`${added.deliveryId}-1`]);
    t.equal(
        await redis.hget(`${prefix}:scanwire-default:${added.deliveryId}-1`, 'data'),
        JSON.stringify({ deliveryId: added.deliveryId, attempt: 1 }),
    );
});

t.test('reports what a handler throws, drops the job and leaves nothing behind', async (t) => {
    const prefix = `t-${randomUUID()}`;
    const queue = closes(t, redisQueue({ url: shared, prefix, ...quiet }));
    const redis = new Redis(shared);
    t.teardown(() => redis.disconnect());
    const errors: Error[] = [];
    let runs = 0;
    const worker = await queue.work(
        'default',
        async () => {
            runs += 1;
            throw new Error('broken handler');
        },
        { concurrency: 1, onError: (error) => errors.push(error) },
    );
    const [first, second] = [job(), job()];
    await queue.add([first, second]);
    await until(() => runs === 2);
    await worker.close();
    t.same(
        errors.map((error) => error.message),
        ['broken handler', 'broken handler'],
    );
    const left = await redis.keys(`${prefix}:scanwire-default:*-1`);
    t.same(left, [], 'no job is left');
    t.equal(runs, 2, 'none ran twice');
});

t.test('reports a job whose data is gone instead of handing it out', async (t) => {
    const prefix = `t-${randomUUID()}`;
    const queue = closes(t, redisQueue({ url: shared, prefix, ...quiet }));
    const redis = new Redis(shared);
    t.teardown(() => redis.disconnect());
    const [evicted, whole] = [job(), job()];
    await queue.add([evicted, whole]);
    await redis.hdel(`${prefix}:scanwire-default:${evicted.deliveryId}-1`, 'data');
    const errors: Error[] = [];
    const seen: string[] = [];
    const worker = await queue.work(
        'default',
        async ({ deliveryId }) => {
            seen.push(deliveryId);
        },
        { concurrency: 1, onError: (error) => errors.push(error) },
    );
    await until(() => seen.length > 0);
    t.same(seen, [whole.deliveryId]);
    t.match(errors, [{ message: /without its ids/ }]);
    await worker.close();
});

t.test('finishes the jobs in hand when a worker closes and leaves the others', async (t) => {
    const queue = closes(t, redisQueue({ url: shared, prefix: `t-${randomUUID()}`, ...quiet }));
    const seen: string[] = [];
    let finish = (): void => {};
    const gate = new Promise<void>((resolve) => {
        finish = resolve;
    });
    const jobs = [job(), job(), job()];
    await queue.add(jobs);
    let started = 0;
    const worker = await queue.work(
        'default',
        async ({ deliveryId }) => {
            started += 1;
            await gate;
            seen.push(deliveryId);
        },
        { concurrency: 2 },
    );
    await until(() => started === 2);
    const closed = worker.close();
    finish();
    await closed;
    t.same(seen.sort(), [jobs[0]?.deliveryId, jobs[1]?.deliveryId].sort());
});

t.test('begins a job before it has fetched those behind it', async (t) => {
    const prefix = `t-${randomUUID()}`;
    const queue = closes(t, redisQueue({ url: shared, prefix, ...quiet }));
    const redis = new Redis(shared);
    t.teardown(() => redis.disconnect());
    const count = 60;
    await queue.add(Array.from({ length: count }, () => job()));
    const waiting: Promise<number>[] = [];
    const worker = await queue.work(
        'default',
        async () => {
            waiting.push(redis.llen(`${prefix}:scanwire-default:wait`));
            await waiting.at(-1);
        },
        { concurrency: count },
    );
    await until(() => waiting.length === count);
    // All but those that were fetched while the answer was on its way.
    t.ok(((await waiting[0]) as number) > count / 2, `${await waiting[0]} of ${count} wait when the first has begun`);
    await worker.close();
});

/** Handed out a moment ago, with a claim. */
function reserved(): DeliveryJob {
    return {
        ...job(),
        reservation: { token: randomUUID(), beginBy: Date.now() + 1_000, generation: 1, attemptSinceReplay: 1, settings: 1 },
    };
}

t.test('begins what its own process hands out with a claim without a job, Redis or not', async (t) => {
    const redis = await ownServer(t);
    const queue = closes(t, redisQueue({ url: redis.url, ...quiet }));
    await queue.ready();
    const seen: DeliveryJob[] = [];
    const errors: Error[] = [];
    let finish = (): void => {};
    const gate = new Promise<void>((resolve) => {
        finish = resolve;
    });
    const handler = async (handedOut: DeliveryJob): Promise<void> => {
        seen.push(handedOut);
        await gate;
        throw new Error('not this one');
    };
    const worker = await queue.work('default', handler, { concurrency: 128, onError: (error) => errors.push(error) });
    await redis.kill();
    await t.rejects(queue.add([job()]), { code: 'UNAVAILABLE' }, 'one without a claim has to be a job');
    const handedOut = Array.from({ length: 64 }, reserved);
    await queue.add(handedOut);
    await until(() => seen.length === handedOut.length);
    t.same(seen, handedOut);
    await t.rejects(queue.add([reserved()]), { code: 'UNAVAILABLE' }, 'beyond so many, others share in it');

    const now = performance.now();
    const { mock: time } = mock.method(performance, 'now', () => now + 300);
    t.teardown(() => time.restore());
    const beyond = Array.from({ length: 32 }, reserved);
    await queue.add(beyond);
    await t.rejects(queue.add([reserved()]), { code: 'UNAVAILABLE' }, 'slow ones do not count, up to three quarters of the slots');

    finish();
    await until(() => errors.filter(({ message }) => message === 'not this one').length === 96);
    const closed = worker.close();
    await t.rejects(queue.add([reserved()]), { code: 'UNAVAILABLE' }, 'it begins nothing more');
    await closed;
    t.equal(seen.length, 96);
});

t.test('refuses a malformed collector', async (t) => {
    const queue = closes(t, redisQueue({ url: shared, ...quiet }));
    for (const collector of ['', 'a:b', 'ä', 'x'.repeat(65)]) {
        await t.rejects(queue.add([job(collector)]), { code: 'INVALID_INPUT', field: 'collector' });
        await t.rejects(
            queue.work(collector, async () => {}, { concurrency: 1 }),
            { code: 'INVALID_INPUT' },
        );
    }
});

t.test('refuses options that cannot work, without repeating them', (t) => {
    t.throws(() => redisQueue({}), { code: 'MISCONFIGURED' });
    t.throws(() => redisQueue({ url: 'http://:hunter2@example' }), { message: /^((?!hunter2).)*$/ });
    t.throws(() => redisQueue({ url: 'http://:hunter2@example' }), { code: 'MISCONFIGURED', field: 'url' });
    t.throws(() => redisQueue({ url: shared, prefix: 'a:b' }), { code: 'MISCONFIGURED', field: 'prefix' });
    for (const url of ['redis+sentinel://:hunter2@a,b', 'redis+sentinel://:hunter2@a/jobs/x', 'redis+cluster://:hunter2@', 'hunter2']) {
        t.throws(() => redisQueue({ url }), { code: 'MISCONFIGURED', field: 'url', message: /^((?!hunter2).)*$/ }, url);
    }
    t.match(redisQueue({ url: 'rediss+sentinel://u:p@[::1]:1,b/jobs?sentinelPassword=q' }).address?.('x'), { prefix: '{scanwire:x}' });
    t.match(redisQueue({ url: shared, prefix: '{a:b}' }).address?.('x'), { queue: 'Redis', prefix: '{a:b}' });
    t.end();
});

t.test('is unavailable at once where no Redis listens', async (t) => {
    const queue = closes(t, redisQueue({ url: `redis://:hunter2@127.0.0.1:${await freePort()}` }));
    await t.rejects(queue.ready(), { code: 'UNAVAILABLE', message: 'Redis cannot be reached: ECONNREFUSED' });
    await t.rejects(queue.add([job()]), { code: 'UNAVAILABLE' });
});

t.test('begins TLS with Sentinels before it says anything, where the URL is for TLS', async (t) => {
    const said: Buffer[] = [];
    const sentinel = createServer((socket) => {
        socket
            .on('error', () => {})
            .once('data', (data) => {
                said.push(data);
                socket.destroy();
            });
    });
    t.teardown(() => sentinel.close());
    await once(sentinel.listen(0, '127.0.0.1'), 'listening');
    const { port } = sentinel.address() as AddressInfo;
    const queue = closes(t, redisQueue({ url: `rediss+sentinel://127.0.0.1:${port}/jobs?sentinelPassword=hunter2`, ...quiet }));
    await t.rejects(queue.ready(), { code: 'UNAVAILABLE' });
    t.ok(said.length > 0);
    t.ok(said.every(isClientHello));
});

t.test('tells a wrong password from a Redis that is away', async (t) => {
    const redis = await ownServer(t, ['--requirepass', 'right']);
    const queue = closes(t, redisQueue({ url: redis.url.replace('//', '//:wrong@') }));
    await t.rejects(queue.ready(), { code: 'MISCONFIGURED', message: 'Redis refused the user or the password' });
});

t.test('refuses a database that Redis does not have, and uses no other one instead', async (t) => {
    const redis = await ownServer(t, ['--databases', '2']);
    const { hostname: host, port } = new URL(redis.url);
    for (const address of [{ url: `${redis.url}/2` }, { connection: { host, port: Number(port), db: 2 } }]) {
        const queue = closes(t, redisQueue({ ...address, ...quiet }));
        await t.rejects(queue.ready(), { code: 'MISCONFIGURED', message: /database that url or connection names: it must be one that/ });
    }
    await t.resolves(closes(t, redisQueue({ url: `${redis.url}/1`, ...quiet })).ready());
});

t.test('tells a database that cannot be selected now from one that Redis does not have', async (t) => {
    const redis = await ownServer(t, ['--databases', '2']);
    const queue = closes(t, redisQueue({ url: `${redis.url}/1`, ...quiet }));
    await queue.ready();
    await redis.command('ACL SETUSER default -select');
    await t.rejects(queue.ready(), { code: 'UNAVAILABLE', message: /does not open the database/ });
    await redis.command('ACL SETUSER default +select');
    await t.resolves(queue.ready());
});

t.test('refuses a Redis that evicts keys', async (t) => {
    const redis = await ownServer(t, ['--maxmemory-policy', 'allkeys-lru']);
    const queue = closes(t, redisQueue({ url: redis.url, ...quiet }));
    await t.rejects(queue.ready(), { code: 'MISCONFIGURED', message: /maxmemory-policy allkeys-lru/ });
});

t.test('reads the policy elsewhere where CONFIG is forbidden, and warns where nothing tells it', async (t) => {
    const redis = await ownServer(t, ['--maxmemory-policy', 'volatile-lru']);
    await redis.command('ACL SETUSER noconfig on >pw ~* &* +@all -config');
    await redis.command('ACL SETUSER blind on >pw ~* &* +@all -config -info');
    const noConfig = closes(t, redisQueue({ url: redis.url.replace('//', '//noconfig:pw@'), ...quiet }));
    await t.rejects(noConfig.ready(), { code: 'MISCONFIGURED', message: /volatile-lru/ });

    const warnings: string[] = [];
    const blind = new Redis(redis.url.replace('//', '//blind:pw@'), { enableReadyCheck: false });
    t.teardown(() => blind.disconnect());
    const queue = closes(t, redisQueue({ connection: blind, onWarning: (message) => warnings.push(message) }));
    await queue.ready();
    t.match(warnings, [/does not tell its maxmemory-policy/]);
});

t.test('is unavailable when the connection breaks while it asks for the policy', async (t) => {
    const { hostname, port } = new URL((await ownServer(t)).url);
    const proxy = await tcpProxy({ host: hostname, port: Number(port) });
    t.teardown(() => proxy.close());
    const queue = closes(t, redisQueue({ url: `redis://127.0.0.1:${proxy.port}`, ...quiet }));
    await queue.ready();
    proxy.silence();
    const asking = queue.ready();
    await setImmediate();
    // Nobody listens there any more when the question is asked once again.
    await Promise.all([proxy.close(), t.rejects(asking, { code: 'UNAVAILABLE', message: 'Redis cannot be reached' })]);
});

t.test('opens a queue again when it has failed to open', async (t) => {
    const prefix = `t-${randomUUID()}`;
    const away = new Redis({ port: await freePort(), retryStrategy: () => null });
    const there = new Redis(shared);
    away.on('error', () => {});
    const connections = [away, there];
    const server = {
        name: 'Redis',
        few: 1,
        backend: createRedisBackend as BullmqServer['backend'],
        address: () => ({ queue: 'Redis' as const }),
        ready: async () => {},
        firstWaiting: async () => null,
        producer: async () => ({ connection: connections.shift() as Redis, prefix }),
        worker: async () => t.fail('Nobody works here') as never,
        close: async () => there.disconnect(),
    };
    const queue = closes(t, bullmqQueue(server));
    await t.rejects(queue.add([job()]), { code: 'UNAVAILABLE', message: /^Cannot add jobs to queue .*: Redis does not take them$/ });
    await queue.add([job()]);
    t.equal((await there.keys(`${prefix}:*:wait`)).length, 1);
});

t.test('warns of a Redis without an append-only file', async (t) => {
    const redis = await ownServer(t, ['--appendonly', 'no']);
    const warnings: string[] = [];
    const queue = closes(t, redisQueue({ url: redis.url, onWarning: (message) => warnings.push(message) }));
    await queue.ready();
    t.match(warnings, [/appendonly no/]);
});

t.test('takes the options of a client, the database among them', async (t) => {
    const redis = await ownServer(t);
    const { hostname: host, port } = new URL(redis.url);
    const queue = closes(t, redisQueue({ connection: { host, port: Number(port), db: 3 }, ...quiet }));
    await queue.ready();
    const seen: string[] = [];
    const worker = await queue.work('default', async ({ deliveryId }) => void seen.push(deliveryId), { concurrency: 1 });
    const added = job();
    await queue.add([added]);
    await until(() => seen.length === 1);
    await worker.close();
    t.same(seen, [added.deliveryId]);
    t.match(await redis.command('INFO keyspace'), /^db3:/m);
    t.notMatch(await redis.command('INFO keyspace'), /^db0:/m);
});

t.test("uses a host's client as a model and leaves it open", async (t) => {
    const prefix = `t-${randomUUID()}`;
    const host = new Redis(shared, { keyPrefix: 'host:', maxRetriesPerRequest: 20 });
    t.teardown(() => host.disconnect());
    const queue = redisQueue({ connection: host, prefix, ...quiet });
    await queue.ready();
    const seen: string[] = [];
    const worker = await queue.work(
        'default',
        async ({ deliveryId }) => {
            seen.push(deliveryId);
        },
        { concurrency: 1 },
    );
    const added = job();
    await queue.add([added]);
    await until(() => seen.length === 1);
    await worker.close();
    await queue.close();
    t.same(seen, [added.deliveryId]);
    t.equal(await host.ping(), 'PONG');
    t.equal(host.listenerCount('error'), 0, 'no listener is left on it');
});

t.test('survives a restart of Redis', async (t) => {
    const { redis, queue, seen } = await working(t);
    const [before, after] = [job(), job()];
    await queue.add([before]);
    await until(() => seen.includes(before.deliveryId));
    await redis.kill();
    await until(() =>
        queue.add([job()]).then(
            () => false,
            (error) => error.code === 'UNAVAILABLE',
        ),
    );
    await redis.start();
    await addEventually(queue, after);
    await until(() => seen.includes(after.deliveryId));
});

t.test('takes jobs that are added after FLUSHALL', async (t) => {
    const { redis, queue, seen } = await working(t);
    const [before, after] = [job(), job()];
    await queue.add([before]);
    await until(() => seen.includes(before.deliveryId));
    t.match(await redis.command('FLUSHALL'), /OK/);
    await redis.command('SCRIPT FLUSH');
    await queue.add([after]);
    await until(() => seen.includes(after.deliveryId));
});

t.test('survives FLUSHALL under a job in hand', async (t) => {
    const redis = await ownServer(t);
    const queue = redisQueue({ url: redis.url, ...quiet });
    const seen: string[] = [];
    let release = (): void => {};
    const gate = new Promise<void>((resolve) => {
        release = resolve;
    });
    const worker = await queue.work(
        'default',
        async ({ deliveryId }) => {
            seen.push(deliveryId);
            await gate;
        },
        { concurrency: 1 },
    );
    const [before, after] = [job(), job()];
    await queue.add([before]);
    await until(() => seen.length === 1);
    await redis.command('FLUSHALL');
    release();
    await queue.add([after]);
    await until(() => seen.includes(after.deliveryId));
    await worker.close();
    await queue.close();
});

t.test('goes on after Redis was out of memory, without a flood of errors meanwhile', async (t) => {
    const redis = await ownServer(t);
    const queue = closes(t, redisQueue({ url: redis.url, ...quiet }));
    const jobs = Array.from({ length: 30 }, () => job());
    await queue.add(jobs);
    await redis.command('CONFIG SET maxmemory 1');
    await t.rejects(queue.add([job()]), { code: 'UNAVAILABLE' });

    const seen: string[] = [];
    const errors: Error[] = [];
    const worker = await queue.work(
        'default',
        async ({ deliveryId }) => {
            seen.push(deliveryId);
        },
        { concurrency: 5, onError: (error) => errors.push(error) },
    );
    t.teardown(() => worker.close());
    await until(() => errors.length > 5);
    const { now } = Date;
    t.intercept(Date, 'now', { value: () => now() - 3_600_000 });
    await until(() => errors.length > 20);
    t.ok(errors.length < 40, 'pauses after some errors, whatever the clock is set to');
    t.equal(seen.length, 0);
    await redis.command('CONFIG SET maxmemory 0');
    await until(() => seen.length === jobs.length);
});

t.test('starts working when Redis comes up after the worker', async (t) => {
    const redis = await ownServer(t);
    await redis.kill();
    const queue = redisQueue({ url: redis.url, ...quiet });
    const seen: string[] = [];
    const worker = await queue.work(
        'default',
        async ({ deliveryId }) => {
            seen.push(deliveryId);
        },
        { concurrency: 1 },
    );
    await redis.start();
    const added = job();
    await addEventually(queue, added);
    await until(() => seen.includes(added.deliveryId));
    await worker.close();
    await queue.close();
});

t.test('closes while Redis is away', async (t) => {
    const redis = await ownServer(t);
    const queue = redisQueue({ url: redis.url, ...quiet });
    await queue.ready();
    const worker = await queue.work('default', async () => {}, { concurrency: 1 });
    await queue.add([job()]);
    await redis.kill();
    await worker.close();
    await queue.close();
    t.pass('both ended');
});

t.test('stores a reservation under the name by which processes of earlier releases read it', async (t) => {
    const redis = await ownServer(t);
    const queue = closes(t, redisQueue({ url: redis.url, ...quiet }));
    await queue.ready();
    const handedOut = reserved();
    await queue.add([handedOut]);
    const client = new Redis(redis.url);
    t.teardown(() => client.quit());
    const [stored] = await client.keys(`*:${handedOut.deliveryId}-1-*`);
    t.same(JSON.parse((await client.hget(stored ?? '', 'data')) ?? '{}').grant, handedOut.reservation);
});

/** Two queues on one server of their own: what a process hands out to its own worker needs no server. */
async function twoQueues(t: Test) {
    const { url } = await ownServer(t);
    const redis = new Redis(url);
    t.teardown(() => redis.disconnect());
    const prefix = `t-${randomUUID()}`;
    const [queue, other] = [redisQueue({ url, prefix, ...quiet }), redisQueue({ url, prefix, ...quiet })];
    closes(t, queue);
    closes(t, other);
    await Promise.all([queue.ready(), other.ready()]);
    return { redis, prefix, url, queue, other };
}

t.test('hands over no claim after a connection was lost', async (t) => {
    const { redis, queue, other } = await twoQueues(t);
    const seen: DeliveryJob[] = [];
    let open = (): void => {};
    const worker = await queue.work(
        'default',
        (one) => {
            seen.push(one);
            return seen.length === 2 ? new Promise<void>((resolve) => (open = resolve)) : Promise.resolve();
        },
        { concurrency: 1 },
    );
    t.teardown(() => worker.close());
    await other.add([reserved()]);
    await until(() => seen.length === 1);
    t.ok(seen[0]?.reservation);

    // It has no claim, so that the next one waits for its end in the server.
    await other.add([job()]);
    await until(() => seen.length === 2);
    await other.add([reserved()]);
    await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    open();
    await until(() => seen.length === 3);
    t.equal(seen[2]?.reservation, null);
});

t.test('hands over no claim of a job that another worker has lost', async (t) => {
    const { redis, prefix, url, queue, other } = await twoQueues(t);
    await other.add([reserved()]);
    const connection = new Redis(url, { maxRetriesPerRequest: null });
    const dying = new Worker('scanwire-default', null, { connection, prefix, autorun: false, lockDuration: 50, stalledInterval: 50 });
    t.ok(await dying.getNextJob('of one that dies'));
    await dying.startStalledCheckTimer();
    await until(async () => (await redis.llen(`${prefix}:scanwire-default:wait`)) === 1);
    await dying.close(true);
    connection.disconnect();

    const seen: DeliveryJob[] = [];
    const worker = await queue.work('default', async (one) => void seen.push(one), { concurrency: 1 });
    t.teardown(() => worker.close());
    await until(() => seen.length === 1);
    t.equal(seen[0]?.reservation, null);
});

t.test("keeps BullMQ's stream of events short", async (t) => {
    const { redis, prefix, queue } = await twoQueues(t);
    for (let count = 0; count < 10; count += 1) {
        await queue.add(Array.from({ length: 100 }, () => job()));
    }
    t.equal(await redis.llen(`${prefix}:scanwire-default:wait`), 1_000);
    const events = await redis.xlen(`${prefix}:scanwire-default:events`);
    // Redis cuts it by whole nodes, each of a hundred.
    t.ok(events <= 300, `${events} events`);
});

t.test('sends what is added together by one write', async (t) => {
    const { url, queue } = await twoQueues(t);
    // The first of a queue opens it, and Redis learns the scripts.
    const [first, second] = [job('west'), job('east')];
    await queue.add([first, second]);
    await queue.add([job('west'), job('west')]);
    const port = Number(new URL(url).port);
    let writes = 0;
    const prototype = Socket.prototype as unknown as Record<string, (this: Socket, ...args: unknown[]) => void>;
    for (const name of ['_write', '_writev']) {
        const original = prototype[name] as (this: Socket, ...args: unknown[]) => void;
        prototype[name] = function (...args) {
            writes += this.remotePort === port ? 1 : 0;
            original.apply(this, args);
        };
        t.teardown(() => {
            prototype[name] = original;
        });
    }
    for (const collectors of [['west'], ['west', 'west'], ['west', 'west', 'west'], Array(64).fill('west'), ['west', 'east']]) {
        writes = 0;
        await queue.add(collectors.map((collector) => job(collector)));
        t.equal(writes, 1, `${collectors.length} jobs for ${new Set(collectors).size} collectors`);
    }
});
