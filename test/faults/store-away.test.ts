import t from 'tap';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const MINUTE = 60_000;

/** 30 attempts of a process are answered after a second, when the store has just gone away. */
async function outcomesWithoutStore(t: Parameters<typeof simulatedDeployment>[0]) {
    const deployment = simulatedDeployment(t);
    const worker = await deployment.start('worker');
    await deployment.exporter(worker);
    deployment.receive = () => ({ result: 204, after: 1_000 });
    const ids = await deployment.publish(worker, 30);
    await deployment.advance(500);
    t.equal(deployment.posts.length, 30);
    deployment.storeIsAway = true;
    await deployment.advance(MINUTE);
    t.match(worker.errors.at(-1), { code: 'UNAVAILABLE' });
    return { deployment, worker, ids };
}

t.test('outcomes that were known while the store was away for a minute are recorded when it is back', async (t) => {
    const { deployment, worker, ids } = await outcomesWithoutStore(t);
    t.strictSame(await deployment.states(), { queued: 30 }, 'nobody could say that they have begun');
    deployment.storeIsAway = false;
    await deployment.advance(5 * MINUTE);
    t.equal(deployment.posts.length, 30, 'none is sent again');
    t.strictSame(await deployment.states(), { delivered: 30 });
    for (const id of ids) {
        t.match((await worker.deliveries.show(id)).history, [{ number: 1, outcome: { code: 'delivered' }, late: false }]);
    }
});

t.test('a process that starts when the store is back takes them for lost, and still sends none again', async (t) => {
    const { deployment } = await outcomesWithoutStore(t);
    deployment.storeIsAway = false;
    await deployment.start('another');
    await deployment.advance(5 * MINUTE);
    t.equal(deployment.posts.length, 30);
    t.strictSame(await deployment.states(), { delivered: 30 });
});

t.test('a process that stops while the store is away records what it knows before it is closed', async (t) => {
    const { deployment, worker } = await outcomesWithoutStore(t);
    const closed = worker.close();
    await deployment.advance(5_000);
    deployment.storeIsAway = false;
    await deployment.finish(closed);
    t.equal(deployment.posts.length, 30);
    t.strictSame(await deployment.states(), { delivered: 30 });
});

t.test('what is accepted before and after goes out without a restart', async (t) => {
    const { deployment, worker } = await outcomesWithoutStore(t);
    await t.rejects(deployment.publish(worker, 1), { code: 'UNAVAILABLE' });
    deployment.storeIsAway = false;
    await deployment.publish(worker, 5);
    await deployment.advance(3_000);
    t.equal(deployment.posts.length, 35);
    t.strictSame(await deployment.states(), { delivered: 35 });
});
