import t, { type Test } from 'tap';
import { type Answer, countedLooks, type SimulatedDeployment, simulatedDeployment } from '../support/simulated-deployment.ts';

const WARM_UP = 2_000;

/** How long events wait, in milliseconds, until they come to a healthy exporter that has so many neighbours; one event each 100 ms. */
async function waitsBeside(t: Test, neighbours: number, answer: Answer): Promise<readonly number[]> {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    const healthy = await deployment.exporter(process);
    for (let index = 0; index < neighbours; index += 1) {
        await deployment.exporter(process);
    }
    deployment.receive = ({ exporterId }) => (exporterId === healthy ? { result: 204 } : answer);
    await deployment.publish(process, 30);
    await deployment.advance(WARM_UP);
    return await waitsOf(deployment, healthy, () => deployment.publish(process, 1), 100);
}

async function waitsOf(deployment: SimulatedDeployment, exporterId: string, publish: () => Promise<unknown>, count: number) {
    const from = deployment.posts.filter((post) => post.exporterId === exporterId).length;
    const published: number[] = [];
    for (let index = 0; index < count; index += 1) {
        published.push(deployment.now());
        await deployment.finish(publish());
        await deployment.advance(100);
    }
    const posts = deployment.posts.filter((post) => post.exporterId === exporterId).slice(from);
    return published.map((at, index) => (posts[index]?.at ?? Number.POSITIVE_INFINITY) - at);
}

t.test('exporters whose receivers answer after 8 s hold up no other', async (t) => {
    const waits = await waitsBeside(t, 20, { result: 204, after: 8_000 });
    t.ok(Math.max(...waits) <= 100, `${Math.max(...waits)} ms`);
});

t.test('exporters whose attempts time out hold up no other', async (t) => {
    const waits = await waitsBeside(t, 20, { result: 'connect_timeout', after: 15_000 });
    t.ok(Math.max(...waits) <= 100, `${Math.max(...waits)} ms`);
});

t.test('a test waits for no delivery', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    const id = await deployment.exporter(process);
    deployment.receive = () => ({ result: 204, after: 8_000 });
    await deployment.publish(process, 500);
    await deployment.advance(1_000);
    const before = deployment.now();
    await deployment.finish(process.exporters.test(id));
    t.ok(deployment.now() - before <= 300, `${deployment.now() - before} ms`);
});

t.test('a delivery that ends does not look through what waits for another exporter', async (t) => {
    const deployment = simulatedDeployment(t);
    const looks = countedLooks(deployment);
    const process = await deployment.start('only');
    const healthy = await deployment.exporter(process);
    const silent = await deployment.exporter(process);
    deployment.receive = ({ exporterId }) => (exporterId === silent ? { result: 'connect_timeout', after: 10_000_000 } : { result: 204 });
    await deployment.publish(process, 200);
    await deployment.advance(WARM_UP);
    t.ok(looks.count > 0, 'they are seen');
    looks.count = 0;
    const before = deployment.posts.length;
    await waitsOf(deployment, healthy, () => deployment.publish(process, 1), 50);
    t.equal(deployment.posts.length - before, 50, 'the silent one takes no more');
    // each event that has to wait is looked for once, and all once a second
    t.ok(looks.count <= 50 + 6, `${looks.count} looks`);
});
