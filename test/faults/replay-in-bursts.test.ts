import t from 'tap';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const RATE = 100;
const FAILED = 300;
const SLICE = 100;

t.test('what a replay sends is spread over each second, so that new events wait behind little of it', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    const exporterId = await deployment.exporter(process);
    deployment.receive = () => ({ result: 410 });
    await deployment.publish(process, 1);
    await deployment.advance(1_000);
    t.equal((await process.exporters.get(exporterId)).state, 'stopped');
    await deployment.publish(process, FAILED);
    t.match(await deployment.states(), { held: FAILED });

    deployment.receive = () => ({ result: 204 });
    await deployment.finish(process.exporters.start(exporterId));
    await process.deliveries.replays.begin({ exporterId, held: true, rate: RATE });
    // It may begin with what its rate allows for a second.
    await deployment.advance(1_000);
    deployment.posts.length = 0;
    await deployment.advance(5_000);
    t.match(await process.deliveries.replays.list(), [{ state: 'done', done: FAILED }]);

    const slices = new Map<number, number>();
    for (const { at } of deployment.posts) {
        slices.set(Math.floor(at / SLICE), (slices.get(Math.floor(at / SLICE)) ?? 0) + 1);
    }
    const counts = [...slices.values()];
    t.ok(Math.max(...counts) <= (2 * RATE * SLICE) / 1_000, `at most twice its rate at once: ${counts}`);
});
