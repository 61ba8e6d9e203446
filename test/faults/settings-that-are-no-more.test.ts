import t, { type Test } from 'tap';
import { memoryQueue } from '../../adapters/memory/index.ts';
import type { DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { type SimulatedDeployment, type SimulatedProcess, simulatedDeployment } from '../support/simulated-deployment.ts';

const BEFORE = 'http://127.0.0.1/';
const NEW = 'http://127.0.0.1/new';

/** A queue that all processes share, whose jobs get to a worker one after the other, 100 ms apart. */
function slowQueue({ sleep }: SimulatedDeployment): DeliveryQueue {
    const queue = memoryQueue();
    let added = 0;
    return {
        ...queue,
        async add(jobs) {
            for (const job of jobs) {
                added = job.singleAttempt ? added : added + 1;
                void sleep(job.singleAttempt ? 1 : 100 * added).then(() => queue.add([job]));
            }
        },
    };
}

/** An exporter whose settings every process knows, with 20 deliveries on their way to the workers. */
async function onTheWay(t: Test, ...names: readonly string[]) {
    const deployment = simulatedDeployment(t);
    const queue = slowQueue(deployment);
    const processes: SimulatedProcess[] = [];
    for (const name of names) {
        processes.push(await deployment.start(name, { queue }));
    }
    const [first] = processes as [SimulatedProcess];
    const id = await deployment.exporter(first);
    await deployment.publish(first, 20);
    await deployment.advance(350);
    t.equal(deployment.posts.length, 3);
    return { deployment, first, id };
}

/** What was posted to the exporter's old URL after a moment. */
function outdated({ posts }: SimulatedDeployment, since: number): readonly unknown[] {
    return posts.filter(({ at, url }) => at > since && url === BEFORE);
}

t.test('a change of the URL is answered at once where nobody else sends, and nothing goes to the old one any more', async (t) => {
    const { deployment, first, id } = await onTheWay(t, 'only');
    const asked = deployment.now();
    await deployment.finish(first.exporters.update(id, { url: NEW }));
    const answered = deployment.now();
    t.ok(answered - asked < 200, `${answered - asked} ms, the test included`);
    await deployment.advance(10_000);
    t.strictSame(outdated(deployment, answered), []);
    t.strictSame(await deployment.states(), { delivered: 20 });
});

t.test('a change of the URL is answered once no other process can begin with the old one', async (t) => {
    const { deployment, first, id } = await onTheWay(t, 'first', 'second');
    const asked = deployment.now();
    await deployment.finish(first.exporters.update(id, { url: NEW }));
    const answered = deployment.now();
    t.ok(answered - asked >= 1_000 && answered - asked < 1_200, `${answered - asked} ms`);
    await deployment.advance(20_000);
    t.strictSame(outdated(deployment, answered), []);
    t.strictSame(await deployment.states(), { delivered: 20 });
    t.equal(deployment.posts.length, 20);
});

for (const names of [['only'], ['first', 'second']]) {
    t.test(`nothing is sent after a stop or a removal that was answered, by ${names.length}`, async (t) => {
        for (const end of ['stop', 'remove'] as const) {
            const { deployment, first, id } = await onTheWay(t, ...names);
            await deployment.finish<unknown>(first.exporters[end](id));
            const { length } = deployment.posts;
            await deployment.advance(10_000);
            t.equal(deployment.posts.length, length);
            t.strictSame(
                await deployment.states(),
                { delivered: length, [end === 'stop' ? 'pending' : 'cancelled']: 20 - length },
                'they wait, or have ended',
            );
        }
    });
}
