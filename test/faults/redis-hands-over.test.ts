import t from 'tap';
import { redisQueue } from '../../adapters/bullmq/index.ts';
import { until } from '../../adapters/contract/assertions.ts';
import type { DeliveryJob } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { redisPair } from '../support/redis-pair.ts';

const job = (deliveryId: string): DeliveryJob => ({
    deliveryId,
    collector: 'default',
    attempt: 1,
    singleAttempt: false,
    reservation: null,
});

t.test('connections that stay with a server that has become a replica go to the new master', async (t) => {
    const pair = await redisPair(t.testdir());
    const queue = redisQueue({ url: pair.url, onWarning: () => {} });
    t.teardown(async () => {
        await queue.close();
        await pair.close();
    });
    const worked: string[] = [];
    const handler = async ({ deliveryId }: DeliveryJob): Promise<void> => void worked.push(deliveryId);
    await queue.ready();
    const worker = await queue.work('default', handler, { concurrency: 1, onError: () => {} });
    t.teardown(() => worker.close());
    await queue.add([job('before')]);
    await until(() => worked.includes('before'));

    await pair.promoteReplica();
    const added = (): Promise<boolean> =>
        queue.add([job('after')]).then(
            () => true,
            () => false,
        );
    await until(added);
    await until(() => worked.includes('after'));
    t.strictSame(worked, ['before', 'after']);
});
