import t from 'tap';
import { present } from '../../adapters/contract/assertions.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const SECOND = 1_000;

t.test('a body that is no JSON any more is not sent: its delivery ends with the reason, and others go on', async (t) => {
    const deployment = simulatedDeployment(t);
    const { deliveries } = deployment.stores;
    const { claim } = deliveries;
    let altered = '';
    Object.assign(deliveries, {
        claim: async (...given: Parameters<typeof claim>) =>
            (await claim(...given)).map((one) =>
                one?.deliveryId === altered ? { ...one, event: { ...one.event, body: 'not json' } } : one,
            ),
    });
    const process = await deployment.start('only');
    const exporterId = await deployment.exporter(process);
    await deployment.finish(process.exporters.pause(exporterId));
    altered = present((await deployment.publish(process, 3))[1]);
    await deployment.advance(10 * SECOND);
    await deployment.finish(process.exporters.resume(exporterId));
    await deployment.advance(5 * SECOND);
    t.strictSame(await deployment.states(), { delivered: 2, exhausted: 1 });
    const { history, attempts } = await process.deliveries.show(altered);
    t.equal(attempts, 1);
    t.match(history, [{ outcome: { code: 'invalid_message', detail: 'The stored body of the event is not JSON' } }]);
    t.equal(deployment.posts.length, 2);
});
