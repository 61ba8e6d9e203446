import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import t, { type Test } from 'tap';
import { postgresQueue, redisQueue } from '../../../adapters/bullmq/index.ts';
import { until } from '../../../adapters/contract/assertions.ts';
import type { DeliveryJob, DeliveryQueue } from '../../../lib/webhooks/dispatching/delivery-queue.ts';
import { required } from '../../support/required.ts';
import { testDatabase } from '../../support/test-database.ts';

/** How long a test that came through the server may wait for its turn, in ms. */
const SOON = 2_000;
const CONCURRENCY = 2;
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

async function onRedis(t: Test): Promise<Processes> {
    const url = required('REDIS_URL');
    const prefix = `t-${randomUUID()}`;
    const [publisher, sender] = [1, 2].map(() => redisQueue({ url, prefix, onWarning: () => {} })) as [DeliveryQueue, DeliveryQueue];
    const redis = new Redis(url);
    t.teardown(async () => {
        await Promise.all([publisher.close(), sender.close()]);
        redis.disconnect();
    });
    return {
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
async function full(t: Test, { publisher, sender, waiting }: Processes, claimed = true) {
    const begun: string[] = [];
    const errors: Error[] = [];
    let finish = (): void => {};
    const gate = new Promise<void>((resolve) => {
        finish = resolve;
    });
    await publisher.add(named('delivery', DELIVERIES).map((id) => job(id, { claimed })));
    const handler = async ({ deliveryId, singleAttempt }: DeliveryJob): Promise<void> => {
        begun.push(deliveryId);
        await (singleAttempt ? null : gate);
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
                const { begun, errors } = await full(t, both, claimed);
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
}
