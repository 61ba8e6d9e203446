import t from 'tap';
import { type SimulatedDeployment, simulatedDeployment } from '../support/simulated-deployment.ts';

/** How long the outcome of a test is waited for, in ms. */
const PATIENCE = 20_000;
/** Reads of the store in that time for one test. */
const READS = 80;

/** A test of an exporter whose collector no process works for, and how often the store is asked for its attempt, which takes so long. */
async function leftTest(deployment: SimulatedDeployment, latency: number) {
    const { deliveries } = deployment.stores;
    const { attempts } = deliveries;
    let reads = 0;
    Object.assign(deliveries, {
        async attempts(id: string) {
            reads += 1;
            await deployment.sleep(latency);
            return await attempts(id);
        },
    });
    const process = await deployment.start('only');
    const { exporter } = await process.exporters.create({ url: 'http://127.0.0.1/', collector: 'nobody' });
    const begunAt = deployment.now();
    const { attempt } = await deployment.finish(process.exporters.test(exporter.id));
    return { attempt, reads, took: deployment.now() - begunAt };
}

t.test('a test that no worker takes is looked for more and more seldom', async (t) => {
    const { attempt, reads, took } = await leftTest(simulatedDeployment(t), 0);
    t.equal(attempt, null);
    t.ok(reads > 10 && reads <= READS, `${reads} reads`);
    t.ok(took >= PATIENCE && took <= PATIENCE + 1_000, `${took} ms`);
});

t.test('and for no longer where the store is slow', async (t) => {
    const { attempt, took } = await leftTest(simulatedDeployment(t), 300);
    t.equal(attempt, null);
    t.ok(took >= PATIENCE && took <= PATIENCE + 1_000, `${took} ms`);
});
