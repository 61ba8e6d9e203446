import t from 'tap';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const RATE = 100;
/** The last step has fewer than the others. */
const FAILED = 310;

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
    deployment.posts.length = 0;
    await deployment.advance(6_000);
    t.match(await process.deliveries.replays.list(), [{ state: 'done', done: FAILED }]);

    const counts = countsIn(100, deployment.posts);
    t.ok(Math.max(...counts) <= 20, `at most twice its rate at once: ${counts}`);
});

t.test('what was tried before goes out one after the other, in a few steps a second', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    const exporterId = await deployment.exporter(process);
    deployment.receive = () => ({ result: 400 });
    await deployment.publish(process, FAILED);
    await deployment.advance(1_000);
    t.match(await deployment.states(), { pending: FAILED });

    deployment.receive = () => ({ result: 204 });
    await process.deliveries.replays.begin({ exporterId, failedSince: new Date(0), rate: RATE });
    deployment.posts.length = 0;
    await deployment.advance(6_000);
    t.match(await process.deliveries.replays.list(), [{ state: 'done', done: FAILED }]);
    const counts = countsIn(10, deployment.posts);
    t.ok(Math.max(...counts) <= 2, `at most twice its rate at once: ${counts}`);
});

/** How many there were in each slice of so many milliseconds that had any. */
function countsIn(slice: number, posts: readonly { readonly at: number }[]): readonly number[] {
    const counts = new Map<number, number>();
    for (const { at } of posts) {
        counts.set(Math.floor(at / slice), (counts.get(Math.floor(at / slice)) ?? 0) + 1);
    }
    return [...counts.values()];
}
