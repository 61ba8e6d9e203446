import t from 'tap';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

t.test('what waits for an end that a dispatch did not see waits for no poll', async (t) => {
    const deployment = simulatedDeployment(t);
    const { deliveries } = deployment.stores;
    const { dispatch } = deliveries;
    let onItsWay = 0;
    Object.assign(deliveries, {
        dispatch: async (...options: Parameters<typeof dispatch>) => {
            const result = await dispatch(...options);
            await deployment.sleep(onItsWay);
            return result;
        },
    });
    const process = await deployment.start('only', { window: 1 });
    await deployment.exporter(process);
    deployment.receive = () => ({ result: 204, after: 100 });
    await deployment.publish(process, 1);
    await deployment.advance(2_000 - (deployment.now() % 1_000));
    t.equal(deployment.posts.length, 1);

    await deployment.advance(200);
    onItsWay = 150;
    await deployment.publish(process, 1);
    await deployment.advance(50);
    // Does not fit in, and is looked for while the first is being sent.
    await deployment.publish(process, 1);
    await deployment.advance(2_000);
    const [first = 0, second = 0] = deployment.posts.slice(1).map(({ at }) => at);
    t.ok(second - first <= 450, `${second - first} ms`);
});
