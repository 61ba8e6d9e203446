import t, { type Test } from 'tap';
import { forAll, sampleEvent } from '../../../../adapters/contract/webhooks/fixture.ts';
import { memoryQueue } from '../../../../adapters/memory/index.ts';
import { type SimulatedDeployment, simulatedDeployment } from '../../../support/simulated-deployment.ts';

/** A deployment whose only process has ended, and has left two deliveries queued. */
async function abandoned(t: Test): Promise<SimulatedDeployment> {
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
    return deployment;
}

t.test('sends at once what a process before it has left queued', async (t) => {
    const deployment = await abandoned(t);
    const after = await deployment.start('after', { queue: memoryQueue() });
    await deployment.advance(500);
    t.same([await deployment.states(), deployment.posts.length], [{ delivered: 2 }, 2]);
    await deployment.finish(after.close());
});

t.test('sends it with the next look where the first one fails', async (t) => {
    const deployment = await abandoned(t);
    const { deliveries } = deployment.stores;
    let failures = 0;
    const failing: typeof deliveries = {
        ...deliveries,
        sweep: async (options) => {
            failures += 1;
            if (failures === 1) {
                throw new Error('The database is busy');
            }
            return await deliveries.sweep(options);
        },
    };
    const after = await deployment.start('after', { deliveries: failing, queue: memoryQueue() });
    await deployment.advance(2_500);
    t.same([await deployment.states(), deployment.posts.length], [{ delivered: 2 }, 2]);
    t.ok(
        after.errors.some(({ message }) => message === 'The database is busy'),
        'is told',
    );
    await deployment.finish(after.close());
});
