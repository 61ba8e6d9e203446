import { spawn } from 'node:child_process';
import { once } from 'node:events';
import t, { type Test } from 'tap';
import { memoryQueue } from '../../adapters/memory/index.ts';
import type { DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import type { Session } from '../../lib/webhooks/dispatching/worker-session.ts';
import { type SimulatedDeployment, type SimulatedProcess, simulatedDeployment } from '../support/simulated-deployment.ts';

/** A queue of one process whose jobs get to their worker after a while: what has been handed out waits there. */
function late({ sleep }: SimulatedDeployment, milliseconds: number): DeliveryQueue {
    const queue = memoryQueue();
    return {
        ...queue,
        async add(jobs) {
            void sleep(milliseconds).then(() => queue.add(jobs));
        },
    };
}

/** A process that stands still when it is told to, whatever it was about to do, while its own clock goes on. */
async function freezable(deployment: SimulatedDeployment) {
    const { deliveries } = deployment.stores;
    const queue = late(deployment, 1);
    let thawed = Promise.resolve();
    const frozen = Object.entries(deliveries).map(([name, method]) => {
        return [name, typeof method === 'function' ? (...args: unknown[]) => thawed.then(() => method(...args)) : method];
    });
    const first = await deployment.start('first', {
        deliveries: Object.fromEntries(frozen),
        queue: {
            ...queue,
            work: (collector, handler, options) => queue.work(collector, (job) => thawed.then(() => handler(job)), options),
        },
    });
    return {
        first,
        freeze(milliseconds: number) {
            thawed = deployment.sleep(milliseconds);
        },
    };
}

/** A process that dies with its event accepted and its job not yet added. */
async function diesBeforeItsJob(t: Test, deployment: SimulatedDeployment): Promise<SimulatedProcess> {
    let armed = false;
    const queue = memoryQueue();
    const first: SimulatedProcess = await deployment.start('first', {
        queue: {
            ...queue,
            async add(jobs) {
                if (armed) {
                    first.kill();
                    await new Promise(() => undefined);
                }
                await queue.add(jobs);
            },
        },
    });
    await deployment.exporter(first);
    await deployment.advance(3_000);
    armed = true;
    await deployment.publish(first, 1);
    t.strictSame(await deployment.states(), { queued: 1 });
    return first;
}

t.test('an event whose process dies between its acceptance and its job is sent once that process counts as dead', async (t) => {
    const deployment = simulatedDeployment(t);
    await deployment.start('second');
    await diesBeforeItsJob(t, deployment);
    await deployment.advance(4_000);
    t.strictSame(deployment.posts, [], 'the other may have begun it, and only be slow');
    await deployment.advance(6_000);
    t.match(deployment.posts, [{ by: 'second' }]);
    t.strictSame(await deployment.states(), { delivered: 1 });
});

t.test('the same, once the process is started again on its machine, within two seconds', async (t) => {
    const deployment = simulatedDeployment(t);
    await diesBeforeItsJob(t, deployment);
    const { deliveries } = deployment.stores;
    const [session] = (await deliveries.sessions()) as [Session];

    // The first process is this one: another one that has ended takes its name.
    const child = spawn(process.execPath, ['-e', ''], { stdio: 'ignore' });
    await once(child, 'exit');
    const identity = { pid: child.pid, started: '', machine: JSON.parse(session.process).machine };
    const spoken = { upTo: await deliveries.now(), attempts: [] };
    await deliveries.keepAlive({ id: session.id, process: JSON.stringify(identity), slots: {} }, 3_600_000, spoken);

    await deployment.advance(200);
    await deployment.start('next');
    await deployment.advance(1_800);
    t.match(deployment.posts, [{ by: 'next' }]);
    t.strictSame(await deployment.states(), { delivered: 1 });
});

for (const [meanwhile, after] of [
    ['has sent', 50],
    ['is sending', 10_000],
] as const) {
    t.test(`a worker that stood still with its job for longer than the claim holds sends nothing that another ${meanwhile}`, async (t) => {
        const deployment = simulatedDeployment(t);
        const { first, freeze } = await freezable(deployment);
        await deployment.start('second', { queue: memoryQueue() });
        await deployment.exporter(first);
        deployment.receive = () => ({ result: 204, after });
        await deployment.publish(first, 1);
        freeze(9_500);
        await deployment.advance(9_400);
        t.match(deployment.posts, [{ by: 'second' }]);
        await deployment.advance(30_000);
        t.equal(deployment.posts.length, 1);
        t.strictSame(await deployment.states(), { delivered: 1 });
    });
}

t.test('a job that comes in time is begun, and one that comes later is claimed', async (t) => {
    for (const [delay, claims] of [
        [900, 0],
        [1_100, 1],
    ] as const) {
        const deployment = simulatedDeployment(t);
        const { deliveries } = deployment.stores;
        let claimed = 0;
        const counting = {
            ...deliveries,
            claim: async (...args: Parameters<typeof deliveries.claim>) => {
                claimed += args[0].filter(({ keepsReservation = false }) => !keepsReservation).length;
                return await deliveries.claim(...args);
            },
        };
        const process = await deployment.start('only', { queue: late(deployment, delay), deliveries: counting });
        await deployment.exporter(process);
        claimed = 0;
        await deployment.publish(process, 1);
        await deployment.advance(delay + 100);
        t.strictSame([await deployment.states(), claimed], [{ delivered: 1 }, claims]);
    }
});

t.test('what a process had just begun when it died is sent by another', async (t) => {
    const deployment = simulatedDeployment(t);
    const first = await deployment.start('first');
    await deployment.start('second');
    await deployment.exporter(first);
    deployment.receive = ({ by }) => ({ result: 204, after: by === 'first' ? 10_000 : 50 });
    await deployment.publish(first, 50);
    await deployment.advance(100);
    const begun = deployment.posts.filter(({ by }) => by === 'first').length;
    t.ok(begun > 0);
    first.kill();
    await deployment.advance(10_000);
    t.strictSame(await deployment.states(), { delivered: 50 });
    t.equal(deployment.posts.length, 50 + begun);
});

t.test('what goes on for longer than the claim holds is sent once', async (t) => {
    const deployment = simulatedDeployment(t);
    const first = await deployment.start('first');
    await deployment.start('second');
    await deployment.exporter(first);
    deployment.receive = () => ({ result: 204, after: 14_000 });
    const [id = ''] = await deployment.publish(first, 1);
    await deployment.advance(4_000);
    t.match(await deployment.stores.deliveries.get(id), { state: 'sending', attempts: 1 });
    await deployment.advance(30_000);
    t.equal(deployment.posts.length, 1);
    t.match(await first.deliveries.show(id), { state: 'delivered', history: [{ number: 1, late: false }] });
});
