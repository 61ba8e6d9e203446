import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import t, { type Test } from 'tap';
import { redisQueue } from '../../adapters/bullmq/index.ts';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryWebhooks } from '../../adapters/memory/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { required } from '../support/required.ts';

/** A deployment on the common Redis that sends for the collector `default`, with the deliveries that its worker was asked to claim. */
async function deployment(t: Test) {
    const stores = memoryWebhooks();
    const asked: string[] = [];
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const queue = redisQueue({ url: required('REDIS_URL'), onWarning: () => {} });
    const own = webhooks({
        ...stores,
        deliveries: {
            ...stores.deliveries,
            claim(requests, ...rest) {
                asked.push(...requests.map(({ deliveryId }) => deliveryId));
                return stores.deliveries.claim(requests, ...rest);
            },
        },
        queue,
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: httpSender({ guard }),
    });
    await own.start();
    await own.work(['default']);
    t.teardown(async () => {
        await own.close();
        await queue.close();
    });
    return { ...own, stores, asked };
}

t.test('two deployments on one Redis never see the jobs of each other', async (t) => {
    const receiver = await countingReceiver(t, (response) => response.writeHead(204).end());
    const [one, other] = [await deployment(t), await deployment(t)];
    const { exporter } = await one.exporters.create({ url: receiver.url });
    await one.exporters.start(exporter.id);
    for (let replays = 0; replays < 50; replays += 1) {
        await one.exporters.test(exporter.id);
    }
    const sent = await one.stores.deliveries.list({ limit: 100 });
    await until(async () => (await one.stores.deliveries.list({ limit: 100, state: 'delivered' })).length === sent.length);
    t.equal(sent.length, 51);
    t.strictSame(other.asked, []);
    t.equal(new Set(one.asked).size, 51);

    const { id } = await one.stores.settings.read();
    const redis = new Redis(required('REDIS_URL'));
    t.teardown(() => redis.quit());
    t.ok((await redis.keys(`{scanwire:${id}}:*`)).length > 0, 'all keys of a deployment are in one slot of a cluster');
});
