import t, { type Test } from 'tap';
import type { Session } from '../../lib/webhooks/dispatching/worker-session.ts';
import { fullWindow, type SimulatedDeployment, type SimulatedProcess, simulatedDeployment } from '../support/simulated-deployment.ts';

/** A deployment each process of which runs on a machine of its own, as a container does: another PID namespace. */
function onMachines(t: Test): SimulatedDeployment {
    const deployment = simulatedDeployment(t);
    const { keepAlive } = deployment.stores.deliveries;
    Object.assign(deployment.stores.deliveries, {
        keepAlive: (session: Session, ...others: [number]) => {
            const process = JSON.stringify({ ...JSON.parse(session.process), machine: `machine of ${session.id}` });
            return keepAlive({ ...session, process }, ...others);
        },
    });
    return deployment;
}

async function busy(t: Test, processName: string | null) {
    const deployment = onMachines(t);
    return { deployment, first: await fullWindow(t, deployment, { processName }) };
}

const replaced = ({ errors }: SimulatedProcess): readonly Error[] => errors.filter(({ message }) => message.includes('processName'));

async function reasonsOf(deployment: SimulatedDeployment, process: SimulatedProcess): Promise<readonly string[]> {
    return (await deployment.finish(process.readiness())).reasons.map(({ code }) => code);
}

t.test('what a process had in flight that died on another machine comes free at once when one of its name starts', async (t) => {
    for (const processName of ['worker-0', null]) {
        const { deployment, first } = await busy(t, processName);
        first.kill();
        const second = await deployment.start('second', { processName });
        await deployment.advance(4_000);
        const states = processName === null ? { pending: 10, sending: 50 } : { delivered: 60 };
        t.strictSame(await deployment.states(), states, String(processName));
        t.strictSame([replaced(second), await reasonsOf(deployment, second)], [[], []]);
    }
});

t.test('one of another name, or of none, leaves it to its machine', async (t) => {
    const { deployment, first } = await busy(t, 'worker-0');
    first.kill();
    await deployment.start('second', { processName: 'worker-1' });
    await deployment.start('third');
    await deployment.advance(4_000);
    t.strictSame(await deployment.states(), { pending: 10, sending: 50 });
});

t.test('a process that lives and whose name is taken stops sending, and says so', async (t) => {
    const { deployment, first } = await busy(t, 'worker-0');
    const second = await deployment.start('second', { processName: 'worker-0' });
    const takenAt = deployment.now();
    for (let round = 0; round < 40; round += 1) {
        await deployment.publish(round % 2 === 0 ? first : second, 5);
        await deployment.advance(250);
    }
    await deployment.advance(20_000);
    t.strictSame(await deployment.states(), { delivered: 260 }, 'it goes on accepting');

    const message = 'Cannot go on sending here: another process of the deployment has begun under the processName of this one';
    t.match(replaced(first), [{ code: 'CONFLICT', field: 'processName', message }]);
    t.strictSame([await reasonsOf(deployment, first), await reasonsOf(deployment, second)], [['CONFLICT'], []]);
    t.strictSame(replaced(second), []);
    t.ok((await deployment.finish(first.readiness())).ready);
    const late = deployment.posts.filter(({ by, at }) => by === 'first' && at > takenAt + 1_500);
    t.strictSame(late, []);
    const again = deployment.posts.length - 260;
    t.ok(again <= 50, `${again} were sent again, of 50 in flight`);

    await deployment.finish(first.work(['default']));
    await deployment.publish(second, 5);
    await deployment.advance(1_000);
    t.equal(deployment.posts.at(-1)?.by, 'second', 'it does not begin again by itself');
});

t.test('a process that was replaced stops as any, and takes its name back when it is started again', async (t) => {
    const { deployment, first } = await busy(t, 'worker-0');
    const second = await deployment.start('second', { processName: 'worker-0' });
    await deployment.advance(10_000);
    await deployment.finish(first.close());
    await deployment.finish(first.start().then(() => first.work(['default'])));
    await deployment.advance(2_000);
    t.strictSame([replaced(first).length, replaced(second).length], [1, 1]);
    await deployment.publish(second, 5);
    await deployment.advance(20_000);
    t.strictSame(await deployment.states(), { delivered: 65 });
    t.ok(deployment.posts.slice(-5).every(({ by }) => by === 'first'));
});

t.test('of two that start at the same time one sends', async (t) => {
    const deployment = onMachines(t);
    const both = await Promise.all(['one', 'other'].map((name) => deployment.start(name, { processName: 'same' })));
    await deployment.exporter(both[0] as SimulatedProcess);
    await deployment.advance(3_000);
    t.equal(both.flatMap(replaced).length, 1);
    await deployment.publish(both[0] as SimulatedProcess, 20);
    await deployment.advance(5_000);
    t.strictSame(await deployment.states(), { delivered: 20 });
    t.equal(new Set(deployment.posts.map(({ by }) => by)).size, 1);
});

t.test('the later of two has the name, though the clock of the store was set back between them', async (t) => {
    const deployment = onMachines(t);
    const { now } = deployment.stores.deliveries;
    const first = await deployment.start('first', { processName: 'worker-0' });
    Object.assign(deployment.stores.deliveries, { now: async () => new Date((await now()).getTime() - 3_600_000) });
    const second = await deployment.start('second', { processName: 'worker-0' });
    await deployment.advance(3_000);
    t.strictSame([replaced(first).length, replaced(second).length], [1, 0]);
});

t.test('a name is written where earlier releases read the process, beside what they read', async (t) => {
    const deployment = simulatedDeployment(t);
    const { deliveries } = deployment.stores;
    await deployment.start('unnamed');
    await deployment.start('named', { processName: 'worker-0' });
    const [unnamed, named] = (await deliveries.sessions()).map(({ process }) => JSON.parse(process));
    t.strictSame(Object.keys(unnamed), ['pid', 'started', 'machine']);
    t.strictSame(named, { ...unnamed, name: 'worker-0', since: named.since });
});
