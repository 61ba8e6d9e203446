import { randomUUID } from 'node:crypto';
import t from 'tap';
import { redisQueue } from '../../adapters/bullmq/index.ts';
import { until } from '../../adapters/contract/assertions.ts';
import type { DeliveryJob } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { Gate } from '../support/held-receiver.ts';
import { redisServer } from '../support/redis-server.ts';

const job = (): DeliveryJob => ({
    deliveryId: randomUUID(),
    collector: 'default',
    attempt: 1,
    singleAttempt: false,
    reservation: null,
});

t.test('what is said of jobs that Redis has lost is said alike of all', async (t) => {
    const redis = await redisServer(t.testdir());
    const queue = redisQueue({ url: redis.url, onWarning: () => {} });
    const gate = new Gate();
    let inHand = 0;
    const handler = async (): Promise<void> => {
        inHand += 1;
        await gate.passed();
    };
    const errors: Error[] = [];
    const worker = await queue.work('default', handler, { concurrency: 6, onError: (error) => errors.push(error) });
    t.teardown(async () => {
        await worker.close();
        await queue.close();
        await redis.kill();
    });
    await queue.add([job(), job(), job(), job()]);
    await until(() => inHand === 4);
    await redis.command('FLUSHALL');
    gate.open();
    await until(() => errors.length >= 4);
    t.equal(new Set(errors.map(({ message }) => message)).size, 1, errors[0]?.message ?? '');
    t.match(errors[0]?.message, /…/);
    const [{ cause, code, name }] = errors as [Error & { code?: unknown }];
    t.type(code, 'number');
    t.match(cause, { code, name }, 'as it came');
});
