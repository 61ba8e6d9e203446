import { randomBytes } from 'node:crypto';
import t from 'tap';
import { until } from '../../../../adapters/contract/assertions.ts';
import { memoryQueue, memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { egressGuard } from '../../../../lib/egress/guard.ts';
import { keyRing } from '../../../../lib/keys/key-ring.ts';
import { httpSender } from '../../../../lib/webhooks/sending/http-sender.ts';
import { webhooks } from '../../../../lib/webhooks/webhooks.ts';
import { Gate, heldReceiver } from '../../../support/held-receiver.ts';
import { investigation } from '../../../support/investigation.ts';

t.test('tells how far a test is that the process sends, step by step, and of nothing else', async (t) => {
    const { port, handshake, answer } = await heldReceiver(t);
    const name = new Gate();
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const lookup = (_host: string, _options: object, done: (error: null, addresses: { address: string }[]) => void): void => {
        void name.passed().then(() => done(null, [{ address: '127.0.0.1' }]));
    };
    const options = { ...memoryWebhooks(), keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }), guard };
    const own = webhooks({ ...options, queue: memoryQueue(), sender: httpSender({ guard, lookup }) });
    const other = webhooks({ ...options, queue: memoryQueue(), sender: httpSender({ guard }) });
    await own.start();
    await own.work(['default']);
    t.teardown(() => Promise.all([own.close(), other.close()]));

    const { exporter } = await own.exporters.create({ url: `https://good.test:${port}/`, trust: 'all' });
    const { deliveryId } = await own.exporters.test(exporter.id, { wait: false });
    const far = async () => (await own.deliveries.show(deliveryId)).progress;
    await until(async () => (await far()) !== null);
    t.match(await far(), { dns: null, connect: null, tls: null, firstByte: null, total: Number });
    t.equal((await other.deliveries.show(deliveryId)).progress, null, 'another process cannot know');
    name.open();
    await until(async () => Number.isInteger((await far())?.connect));
    t.match(await far(), { dns: Number, tls: null, firstByte: null });
    handshake.open();
    await until(async () => Number.isInteger((await far())?.tls));
    t.match(await far(), { dns: Number, connect: Number, firstByte: null });
    answer.open();
    await until(async () => (await own.deliveries.show(deliveryId)).finishedAt !== null);
    const { progress, history } = await own.deliveries.show(deliveryId);
    t.match([progress, history.at(-1)?.outcome], [null, { code: 'delivered', timings: { dns: Number, tls: Number, firstByte: Number } }]);

    await own.exporters.start(exporter.id);
    const accepted = await own.publish('idr_investigation_created', investigation);
    const [id = ''] = accepted.deliveries;
    t.equal((await own.deliveries.show(id)).progress, null, 'of what is no test nothing is kept');
});
