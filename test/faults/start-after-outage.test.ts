import t from 'tap';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const SECOND = 1_000;

t.test('a process that starts when the store is back leaves alone what others are sending', async (t) => {
    const deployment = simulatedDeployment(t);
    const worker = await deployment.start('worker');
    await deployment.exporter(worker);
    deployment.receive = () => ({ result: 204, after: 12 * SECOND });
    await deployment.publish(worker, 30);
    await deployment.advance(SECOND);
    deployment.storeIsAway = true;
    await deployment.advance(9 * SECOND);

    deployment.storeIsAway = false;
    await deployment.start('another');
    await deployment.advance(60 * SECOND);
    t.equal(deployment.posts.length, 30, 'none is sent twice');
    t.strictSame(await deployment.states(), { delivered: 30 });
});

t.test('and takes what a process left that has ended for good', async (t) => {
    const deployment = simulatedDeployment(t);
    const worker = await deployment.start('worker');
    await deployment.exporter(worker);
    deployment.receive = () => ({ result: 204, after: 12 * SECOND });
    await deployment.publish(worker, 30);
    await deployment.advance(SECOND);
    const [session] = await deployment.stores.deliveries.sessions();
    worker.kill();
    await deployment.stores.deliveries.endSessions([session?.id ?? '']);

    await deployment.start('another');
    await deployment.advance(2 * SECOND);
    t.equal(deployment.posts.filter(({ by }) => by === 'another').length, 30, 'at once');
});
