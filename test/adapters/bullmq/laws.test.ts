import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import t from 'tap';
import { postgresQueue, redisQueue } from '../../../adapters/bullmq/index.ts';
import { deliveryQueueContract } from '../../../adapters/contract/index.ts';
import type { DeliveryQueue } from '../../../lib/webhooks/dispatching/delivery-queue.ts';
import { required } from '../../support/required.ts';
import { tapTest } from '../contract/tap-test.ts';
import { databases } from '../postgres/databases.ts';

t.test('keeps the laws on Redis', async (t) => {
    deliveryQueueContract(tapTest(t), async () => {
        const options = { url: required('REDIS_URL'), prefix: `test-${randomUUID()}` };
        return { ...(await both(redisQueue(options), redisQueue(options))), loseJobs: () => removeKeys(options.prefix) };
    });
});

for (const { name, open } of databases) {
    t.test(`keeps the laws on ${name}`, async (t) => {
        const { pool, stop } = await open();
        t.after(stop);
        const queue = (): DeliveryQueue => postgresQueue({ pool });
        deliveryQueueContract(tapTest(t), async () => {
            await pool.query('drop schema if exists bullmq cascade');
            return both(queue(), queue());
        });
    });
}

/** As emptying the server does, for one queue of it. */
async function removeKeys(prefix: string): Promise<void> {
    const redis = new Redis(required('REDIS_URL'));
    await redis.del(await redis.keys(`${prefix}*`));
    await redis.quit();
}

async function both(queue: DeliveryQueue, other: DeliveryQueue) {
    await Promise.all([queue.ready(), other.ready()]);
    return { queue, other };
}
