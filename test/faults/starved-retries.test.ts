import t from 'tap';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

t.test('retries go out beside more first tries than a receiver can take', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only', { window: 8 });
    const id = await deployment.exporter(process);
    await deployment.finish(process.exporters.update(id, { schedule: [1_000] }));
    deployment.receive = () => ({ result: deployment.posts.length <= 20 ? 503 : 204, after: 100 });
    const failed = await deployment.publish(process, 20);

    // 80 a second is all that the window lets through.
    for (let passed = 0; passed < 8_000; passed += 100) {
        await deployment.publish(process, 16);
        await deployment.advance(100);
    }
    t.ok(((await deployment.states()).pending ?? 0) > 200, 'first tries wait');
    const shown = await Promise.all(failed.map((delivery) => process.deliveries.show(delivery)));
    for (const { state, history } of shown) {
        t.match([state, history.map(({ outcome }) => outcome?.code)], ['delivered', ['server_error', 'delivered']]);
    }
});
