import t from 'tap';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

/** Exporters whose attempts end by their time limit at the same moment, some milliseconds apart. */
const TOGETHER = 40;

t.test('attempts that run into their time limit together are followed by few hand-outs', async (t) => {
    const deployment = simulatedDeployment(t);
    const { deliveries } = deployment.stores;
    const { dispatch } = deliveries;
    const dispatched: number[] = [];
    Object.assign(deliveries, {
        dispatch: async (...options: Parameters<typeof dispatch>) => {
            dispatched.push(deployment.now());
            return await dispatch(...options);
        },
    });
    const process = await deployment.start('only', { window: 1 });
    for (let index = 0; index < TOGETHER; index += 1) {
        await deployment.exporter(process);
    }
    let posted = 0;
    deployment.receive = () => {
        posted += 1;
        return { result: 500, after: 5_000 + (posted % TOGETHER) * 4 };
    };
    await deployment.publish(process, 2);
    await deployment.advance(500);
    const first = deployment.posts.length;
    t.ok(first >= TOGETHER, `${first} go on`);
    const begun = deployment.posts[0]?.at ?? 0;
    await deployment.advance(begun + 4_950 - deployment.now());

    dispatched.splice(0);
    await deployment.advance(TOGETHER * 4 + 250);
    t.ok(dispatched.length <= 6, `${dispatched.length} hand-outs after ${TOGETHER} ends`);
    // Those that took so long begin spread over half a second.
    await deployment.advance(500);
    t.ok(deployment.posts.length >= 2 * first, 'and whose place is free gets the next one');
});
