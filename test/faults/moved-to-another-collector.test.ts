import t from 'tap';
import { forAll, sampleEvent } from '../../adapters/contract/webhooks/fixture.ts';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

/*
 * The collector of an exporter is where it is reached from. Once it has another one, no worker of the former sends to it, although the former's jobs are still
 * in the queue.
 */

t.test('what waits in the queue of its former collector is sent by the next one only', async (t) => {
    const deployment = simulatedDeployment(t);
    const { deliveries } = deployment.stores;
    const queue = memoryQueue();
    const former = await deployment.start('former', { queue: { ...memoryQueue(), hasLostJobs: async () => false } });
    const id = await deployment.exporter(former);
    await deployment.advance(9_000);

    const test = { event: sampleEvent({ kind: 'test', body: '{"title":"test"}' }), recipients: { exporterId: id } };
    const events = Array.from({ length: 3 }, () => forAll(sampleEvent({ body: '{"title":"x"}' })));
    await deliveries.accept([...events, test]);
    const { handedOut } = await deliveries.dispatch({ window: 9, breakerAfter: 3, limit: 9 });
    t.equal(handedOut.length, 4);
    await deployment.finish(former.exporters.update(id, { collector: 'edge', url: 'http://127.0.0.1/edge' }, { wait: false }));

    // Its jobs get to the worker of the former collector by now.
    await queue.add(handedOut);
    const late = await deployment.start('late', { queue });
    await deployment.advance(5_000);
    t.strictSame(deployment.posts, []);
    t.strictSame(await deployment.states(), { queued: 3 }, 'they are given to the collector that it has now');

    await late.work(['edge']);
    await deployment.advance(5_000);
    t.strictSame(
        deployment.posts.map(({ url }) => url),
        Array(3).fill('http://127.0.0.1/edge'),
    );
    t.strictSame(await deployment.states(), { delivered: 3 });
    for (const { deliveryId } of handedOut) {
        t.match(await deliveries.get(deliveryId), { state: 'delivered', attempts: 1 });
    }
});
