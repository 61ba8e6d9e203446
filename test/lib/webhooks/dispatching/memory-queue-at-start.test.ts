import t from 'tap';
import { forAll, sampleEvent } from '../../../../adapters/contract/webhooks/fixture.ts';
import { memoryQueue } from '../../../../adapters/memory/index.ts';
import { simulatedDeployment } from '../../../support/simulated-deployment.ts';

t.test('sends at once what a process before it has left queued', async (t) => {
    const deployment = simulatedDeployment(t);
    const before = await deployment.start('before');
    await deployment.exporter(before);
    await deployment.finish(before.close());
    // Taken back once, so that it has to be claimed: nobody but the queue knew of it.
    const { deliveries } = deployment.stores;
    await deliveries.accept([forAll(sampleEvent()), forAll(sampleEvent())]);
    await deliveries.dispatch({ window: 9, breakerAfter: 3, limit: 9 });
    t.same([await deployment.states(), deployment.posts.length], [{ queued: 2 }, 0]);
    await deployment.advance(100);

    const after = await deployment.start('after', { queue: memoryQueue() });
    await deployment.advance(500);
    t.same([await deployment.states(), deployment.posts.length], [{ delivered: 2 }, 2]);
    await deployment.finish(after.close());
});
