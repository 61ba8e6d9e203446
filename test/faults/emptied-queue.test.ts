import { randomBytes } from 'node:crypto';
import t from 'tap';
import { redisQueue } from '../../adapters/bullmq/index.ts';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryWebhooks } from '../../adapters/memory/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { RESERVATION_TIMES } from '../../lib/webhooks/dispatching/reservations.ts';
import { newProgress, outcomeOf } from '../../lib/webhooks/outcomes/outcome.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';
import { redisServer } from '../support/redis-server.ts';
import { INVESTIGATION, simulatedDeployment } from '../support/simulated-deployment.ts';

const quiet = { onWarning: () => {} };

t.test('a queue says that its server was emptied, or came back', async (t) => {
    const redis = await redisServer(t.testdir());
    const queues = [redisQueue({ url: redis.url, ...quiet }), redisQueue({ url: redis.url, ...quiet })] as const;
    t.teardown(async () => {
        await Promise.all(queues.map((queue) => queue.close()));
        await redis.kill();
    });
    const [first, second] = queues;
    t.same([await first.hasLostJobs?.(), await second.hasLostJobs?.()], [true, false], 'there is nothing in a new one');
    t.same([await first.hasLostJobs?.(), await second.hasLostJobs?.()], [false, false]);
    await redis.command('FLUSHALL');
    t.same([await first.hasLostJobs?.(), await second.hasLostJobs?.()], [true, true], 'each is told');
    t.same([await first.hasLostJobs?.(), await second.hasLostJobs?.()], [false, false]);

    await redis.kill();
    await t.rejects(async () => first.hasLostJobs?.(), { code: 'UNAVAILABLE' });
    await redis.start();
    let lost: boolean | undefined;
    await until(async () => {
        lost = await first.hasLostJobs?.().catch(() => undefined);
        return lost !== undefined;
    });
    t.equal(lost, true, 'what was added last may not have been written');
    t.equal(await first.hasLostJobs?.(), false);
});

t.test('a queue says that its server came back with less than it had, also where nobody asked meanwhile', async (t) => {
    const redis = await redisServer(t.testdir(), ['--appendonly', 'no']);
    const queue = redisQueue({ url: redis.url, ...quiet });
    t.teardown(async () => {
        await queue.close();
        await redis.kill();
    });
    const added = { deliveryId: 'delivery', collector: 'default', attempt: 1, singleAttempt: false, reservation: null };
    t.same([await queue.hasLostJobs?.(), await queue.hasLostJobs?.()], [true, false]);
    await redis.command('SAVE');
    await queue.add([added]);
    await redis.kill();
    await redis.start();
    t.match(await redis.command('DBSIZE'), /^:1\b/, 'the job is gone, and what tells an emptied server is there');
    await until(() =>
        queue.add([{ ...added, collector: 'other' }]).then(
            () => true,
            () => false,
        ),
    );
    t.same([await queue.hasLostJobs?.(), await queue.hasLostJobs?.()], [true, false]);
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
    // The time of the store, in which hardly any passes by itself: there no job ever counts as lost for its age.
    let time = 0;
    const exporter = webhooks({
        ...memoryWebhooks({ clock: () => new Date(time++) }),
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
    await exporter.publish('idr_investigation_created', { ...INVESTIGATION, title: 't' });
    await until(async () => (await exporter.deliveries.list()).every(({ state }) => state === 'queued'));

    await redis.command('FLUSHALL');
    await exporter.work(['default']);
    // What was handed out may be begun by whoever has its job until then.
    time += 2 * RESERVATION_TIMES.beginWithin;
    await until(() => sent.length === 2);
    t.ok(time < 10_000, 'the event and the test, before the 10 s');
});

t.test('a collector that nobody can have holds nobody up', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('process');
    const bad = await deployment.exporter(process);
    await deployment.exporter(process);
    await deployment.stores.exporters.update(bad, { collector: 'no/such collector' });
    const ids = await deployment.publish(process, 1);
    await deployment.advance(2_000);
    t.strictSame(await deployment.states(), { delivered: 1, exhausted: 1 });
    const ended = await Promise.all(ids.map((id) => process.deliveries.show(id)));
    t.match(
        ended.find(({ exporterId }) => exporterId === bad)?.history.map(({ outcome }) => outcome?.detail),
        ['No worker can have the name of its collector'],
    );
});

t.test('a collector that nobody can have holds nobody up while the store cannot end its deliveries', async (t) => {
    const deployment = simulatedDeployment(t);
    const { deliveries } = deployment.stores;
    const { claim } = deliveries;
    let isRefusing = true;
    Object.assign(deliveries, {
        claim: async (...args: Parameters<typeof claim>) => {
            // Those of workers have a session.
            if (args[1] === null && isRefusing) {
                throw new Error('not now');
            }
            return await claim(...args);
        },
    });
    const process = await deployment.start('process');
    const bad = await deployment.exporter(process);
    await deployment.exporter(process);
    await deployment.stores.exporters.update(bad, { collector: 'no/such collector' });
    await deployment.publish(process, 1);
    await deployment.advance(2_000);
    t.strictSame(await deployment.states(), { delivered: 1, queued: 1 });
    isRefusing = false;
    await deployment.advance(20_000);
    t.strictSame(await deployment.states(), { delivered: 1, exhausted: 1 });
});
