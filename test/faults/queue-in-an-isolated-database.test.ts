/** The queue works in a database whose transactions begin at another level than read committed. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import t from 'tap';
import { postgresQueue } from '../../adapters/bullmq/index.ts';
import { until } from '../../adapters/contract/assertions.ts';
import type { QueueWorker } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { testDatabase } from '../support/test-database.ts';

const JOBS = 60;

for (const level of ['repeatable read', 'serializable']) {
    t.test(`workers that take jobs at the same time take each once and fail for none, in a database of ${level}`, async (t) => {
        const { url, drop } = await testDatabase();
        const pool = new pg.Pool({ connectionString: url, options: `-c default_transaction_isolation=${level.replace(' ', '\\ ')}` });
        pool.on('error', () => {});
        const queues = Array.from({ length: 3 }, () => postgresQueue({ pool, connections: 8 }));
        t.teardown(async () => {
            await Promise.all(workers.map((worker) => worker.close()));
            await Promise.all(queues.map((queue) => queue.close()));
            await pool.end();
            await drop();
        });
        const errors: string[] = [];
        const seen: string[] = [];
        const workers: QueueWorker[] = [];
        await queues[0]?.ready();
        for (const queue of queues) {
            await queue.ready();
            const take = async ({ deliveryId }: { readonly deliveryId: string }): Promise<void> => {
                seen.push(deliveryId);
                await new Promise(setImmediate);
            };
            workers.push(await queue.work('default', take, { concurrency: 8, onError: (error: Error) => errors.push(error.message) }));
        }
        const jobs = Array.from({ length: JOBS }, () => ({
            collector: 'default',
            deliveryId: randomUUID(),
            attempt: 1,
            singleAttempt: false,
            reservation: null,
        }));
        for (let index = 0; index < JOBS; index += 20) {
            await Promise.all(queues.map((queue) => queue.add(jobs.slice(index, index + 20))));
        }
        await until(() => new Set(seen).size === JOBS);
        t.strictSame(errors, [], 'nothing fails');
        const { rows } = await pool.query('show default_transaction_isolation');
        t.strictSame(rows, [{ default_transaction_isolation: level }], 'the sessions of the application are as they were');
    });
}
