import t from 'tap';
import { forAll, sampleEvent } from '../../adapters/contract/webhooks/fixture.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

/*
 * A process that listens for commits, and as far as it knows goes on listening, may still not be told of one: a pooler has given its connection to
 * somebody else, or the queue of notifications was full.
 */

t.test('what was committed without a notification that comes is sent within seconds', async (t) => {
    const deployment = simulatedDeployment(t);
    const { deliveries } = deployment.stores;
    const deaf: typeof deliveries = {
        ...deliveries,
        listen: () => ({ ready: Promise.resolve(), isListening: () => true, close: async () => undefined }),
    };
    await deployment.exporter(await deployment.start('deaf', { deliveries: deaf }));
    // Nothing is left to be looked for.
    await deployment.advance(60_000);

    for (const count of [1, 2, 3]) {
        const committed = deployment.now();
        await deliveries.accept([forAll(sampleEvent({ body: JSON.stringify({ title: 'x' }) }))]);
        await deployment.advance(6_000);
        t.equal(deployment.posts.length, count);
        t.ok((deployment.posts.at(-1)?.at ?? 0) - committed <= 5_500);
        await deployment.advance(20_000);
    }
});
