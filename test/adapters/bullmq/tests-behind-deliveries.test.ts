import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { createRedisBackend } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import t, { type Test } from 'tap';
import { postgresQueue, redisQueue } from '../../../adapters/bullmq/index.ts';
import { bullmqQueue } from '../../../adapters/bullmq/queue.ts';
import type { BullmqServer } from '../../../adapters/bullmq/worker.ts';
import { until } from '../../../adapters/contract/assertions.ts';
import type { DeliveryJob, DeliveryQueue } from '../../../lib/webhooks/dispatching/delivery-queue.ts';
import { required } from '../../support/required.ts';
import { testDatabase } from '../../support/test-database.ts';

/** How long a test that came through the server may wait for its turn, in ms. */
const SOON = 2_000;
const CONCURRENCY = 2;
/** How many tests begin beyond those. */
const PLACES = 16;
/** So many that each is a job of its own. */
const DELIVERIES = 8;

/** Two processes of a deployment, one of which has no worker. */
interface Processes {
    readonly publisher: DeliveryQueue;
    readonly sender: DeliveryQueue;
    /** How many jobs wait on the server. */
    waiting(): Promise<number>;
    /** How many jobs are handed out and not done. */
    active(): Promise<number>;
}

async function onRedis(t: Test): Promise<Processes & { readonly prefix: string }> {
    const url = required('REDIS_URL');
    const prefix = `t-${randomUUID()}`;
    const [publisher, sender] = [1, 2].map(() => redisQueue({ url, prefix, onWarning: () => {} })) as [DeliveryQueue, DeliveryQueue];
    const redis = new Redis(url);
    t.teardown(async () => {
        await Promise.all([publisher.close(), sender.close()]);
        redis.disconnect();
    });
    return {
        prefix,
        publisher,
        sender,
        waiting: () => redis.llen(`${prefix}:scanwire-default:wait`),
        active: () => redis.llen(`${prefix}:scanwire-default:active`),
    };
}

async function onPostgres(t: Test): Promise<Processes> {
    const database = await testDatabase();
    const pool = new pg.Pool({ connectionString: database.url });
    const [publisher, sender] = [postgresQueue({ pool }), postgresQueue({ pool })];
    t.teardown(async () => {
        await Promise.all([publisher.close(), sender.close()]);
        await pool.end();
        await database.drop();
    });
    await publisher.ready();
    const count = async (state: string): Promise<number> => {
        const { rows } = await pool.query('SELECT count(*)::int AS jobs FROM bullmq.job WHERE state = $1::bullmq.job_state', [state]);
        return rows[0].jobs;
    };
    return { publisher, sender, waiting: () => count('waiting'), active: () => count('active') };
}

function job(deliveryId: string, { claimed = true, singleAttempt = false } = {}): DeliveryJob {
    const reservation = { token: randomUUID(), beginBy: Date.now() + 1_000, generation: 1, attemptSinceReplay: 1, settings: 1 };
    return { collector: 'default', deliveryId, attempt: 1, singleAttempt, reservation: claimed ? reservation : null };
}

const named = (name: string, count: number): string[] => Array.from({ length: count }, (_, index) => `${name} ${index + 1}`);

/** A worker that has as many deliveries as it may, none of which ends before `finish`, with others that wait on the server. */
async function full(t: Test, { publisher, sender, waiting }: Processes, { claimed = true, testsHang = false } = {}) {
    const begun: string[] = [];
    const errors: Error[] = [];
    let finish = (): void => {};
    const gate = new Promise<void>((resolve) => {
        finish = resolve;
    });
    await publisher.add(named('delivery', DELIVERIES).map((id) => job(id, { claimed })));
    const handler = async ({ deliveryId, singleAttempt }: DeliveryJob): Promise<void> => {
        begun.push(deliveryId);
        await (singleAttempt && !testsHang ? null : gate);
    };
    const worker = await sender.work('default', handler, { concurrency: CONCURRENCY, onError: (error) => errors.push(error) });
    t.teardown(() => {
        finish();
        return worker.close();
    });
    // Of those that are handed over with their claims, one or two wait in the hands of the worker.
    await until(async () => begun.length === CONCURRENCY && (await waiting()) <= DELIVERIES - CONCURRENCY - (claimed ? 1 : 0));
    return { begun, errors, worker, finish };
}

for (const [name, processes] of [['Redis', onRedis] as const, ['PostgreSQL', onPostgres] as const]) {
    t.test(`a test does not wait behind deliveries that came through ${name}`, async (t) => {
        for (const [what, claimed] of [['with', true] as const, ['without', false] as const]) {
            await t.test(`${what} their claims`, async (t) => {
                const both = await processes(t);
                const { begun, errors } = await full(t, both, { claimed });
                const tests = named('test', 6);
                const addedAt = performance.now();
                await both.publisher.add(tests.map((id) => job(id, { singleAttempt: true })));
                await until(() => begun.length === CONCURRENCY + tests.length, SOON);
                t.comment(`${Math.round(performance.now() - addedAt)} ms`);
                t.strictSame(begun.slice(CONCURRENCY).sort(), tests);
                await until(async () => (await both.active()) <= CONCURRENCY, SOON);
                t.ok((await both.waiting()) >= DELIVERIES - 2 * CONCURRENCY, 'no delivery was fetched beside them');
                t.strictSame(errors, []);
            });
        }
    });

    t.test(`as many tests begin as there are places, on ${name}`, async (t) => {
        const both = await processes(t);
        const { begun, finish } = await full(t, both, { testsHang: true });
        await both.publisher.add(named('test', PLACES + 2).map((id) => job(id, { singleAttempt: true })));
        await until(() => begun.length === CONCURRENCY + PLACES, SOON);
        t.ok((await both.waiting()) >= DELIVERIES - 2 * CONCURRENCY + 2, 'the others wait, and so do deliveries');
        finish();
        await until(() => begun.length === DELIVERIES + PLACES + 2);
    });

    t.test(`a worker that closes ends the tests that it has fetched from ${name}`, async (t) => {
        const both = await processes(t);
        const { begun, errors, worker, finish } = await full(t, both, { testsHang: true });
        await both.publisher.add(named('test', 2).map((id) => job(id, { claimed: false, singleAttempt: true })));
        await until(() => begun.length === CONCURRENCY + 2, SOON);
        const left = await both.waiting();
        const closed = worker.close();
        await setImmediate();
        finish();
        await closed;
        t.equal(await both.active(), 0);
        t.equal(await both.waiting(), left);
        t.strictSame(errors, []);
    });
}

/** A sender on Redis that is told by `look` what waits. */
async function looking(t: Test, look: (both: Processes) => Promise<string>) {
    const both = await onRedis(t);
    const { hostname: host, port } = new URL(required('REDIS_URL'));
    const sender = bullmqQueue({
        name: 'Redis',
        few: 1,
        backend: createRedisBackend as BullmqServer['backend'],
        address: () => ({ queue: 'Redis' }),
        ready: async () => {},
        producer: async () => t.fail('It adds nothing') as never,
        firstWaiting: () => look(both),
        async worker() {
            const connection = { host, port: Number(port), maxRetriesPerRequest: null };
            return { connection, prefix: both.prefix, isSteady: () => true, stopWaiting: () => {}, release: () => {} };
        },
        close: async () => {},
    });
    return { ...both, sender };
}

for (const [what, answer] of [
    ['finds a test', async () => 'test-of-another'] as const,
    ['loses its connection', () => Promise.reject(new Error('Connection is closed'))] as const,
]) {
    t.test(`a look that ${what} when its worker closes fetches nothing`, async (t) => {
        let looks = 0;
        let goOn = (): void => {};
        const asked = new Promise<void>((resolve) => {
            goOn = resolve;
        });
        const both = await looking(t, async () => {
            looks += 1;
            await asked;
            return await answer();
        });
        const { begun, errors, worker, finish } = await full(t, both);
        await both.publisher.add([job('test', { singleAttempt: true })]);
        await until(() => looks === 1, SOON);
        const left = await both.waiting();
        const closed = worker.close();
        goOn();
        finish();
        await closed;
        t.strictSame([looks, begun.length, await both.active(), await both.waiting()], [1, CONCURRENCY, 0, left]);
        t.strictSame(errors, []);
    });
}

t.test('where another worker is quicker, one delivery at most is fetched a look', async (t) => {
    const looks: number[] = [];
    const waiting: number[] = [];
    const both = await looking(t, async (both) => {
        looks.push(performance.now());
        waiting.push(await both.waiting());
        return 'test-of-another';
    });
    await full(t, both);
    await until(() => waiting.length === 3, 2 * SOON);
    const [first = 0, second = 0, third = 0] = looks;
    t.ok(second - first > 200 && third - second > 200, `looks at ${looks.map(Math.round).join(', ')} ms`);
    t.strictSame(
        waiting.map((count) => (waiting[0] as number) - count),
        [0, 1, 2],
    );
});

t.test('of looks that fail one after the other only the first is reported', async (t) => {
    let looks = 0;
    const both = await looking(t, async () => {
        looks += 1;
        if (looks !== 4) {
            throw new Error(`Connection terminated at look ${looks}`);
        }
        return 'delivery';
    });
    const { errors } = await full(t, both);
    await until(() => looks === 7, 2 * SOON);
    t.strictSame(
        errors.map(({ message }) => message),
        ['Connection terminated at look 1', 'Connection terminated at look 5'],
    );
});
