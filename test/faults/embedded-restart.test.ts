import { spawn } from 'node:child_process';
import { once } from 'node:events';
import t, { type Test } from 'tap';
import { memoryQueue } from '../../adapters/memory/index.ts';
import type { DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import type { Session } from '../../lib/webhooks/dispatching/worker-session.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const NEVER = new Promise<never>(() => {});

/** Jobs within a process, which are gone with it. */
function ownQueue() {
    let dead = false;
    const queue = memoryQueue();
    const own: DeliveryQueue = {
        ...queue,
        work: (collector, handler, options) => queue.work(collector, (job) => (dead ? NEVER : handler(job)), options),
    };
    return {
        queue: own,
        kill() {
            dead = true;
        },
    };
}

/** A process of this machine that has ended, as a session names it. */
async function endedIdentity(t: Test, { process }: Session): Promise<string> {
    const child = spawn('sleep', ['60'], { stdio: 'ignore' });
    t.teardown(() => child.kill('SIGKILL'));
    await once(child, 'spawn');
    child.kill('SIGKILL');
    await once(child, 'exit');
    return JSON.stringify({ ...JSON.parse(process), pid: child.pid, started: '' });
}

const ANSWERS_AFTER = 200;
const WINDOW = 200;
const COUNT = 500;

/** The last is long after its session has gone silent. */
for (const away of [0, 1_000, 20_000]) {
    t.test(`what a process with its own queue left arrives within 3 s of the next start, ${away} ms after it was killed`, async (t) => {
        const deployment = simulatedDeployment(t);
        deployment.receive = () => ({ result: 204, after: ANSWERS_AFTER });
        const jobs = ownQueue();
        const first = await deployment.start('first', { queue: jobs.queue, window: WINDOW });
        await deployment.exporter(first);
        await deployment.advance(2_500);
        await deployment.publish(first, COUNT);
        await deployment.advance(150);
        const { deliveries } = deployment.stores;
        const [session] = (await deliveries.sessions()) as [Session];
        jobs.kill();
        first.kill();
        await deliveries.keepAlive({ ...session, process: await endedIdentity(t, session) }, 7_500);
        const left = COUNT - ((await deployment.states()).delivered ?? 0);
        t.match(await deployment.states(), { queued: WINDOW });
        await deployment.advance(away);

        await deployment.start('next', { queue: memoryQueue(), window: WINDOW });
        const started = deployment.now();
        while ((await deployment.states()).delivered !== COUNT && deployment.now() < started + 20_000) {
            await deployment.advance(50);
        }
        const took = deployment.now() - started;
        t.ok(took <= 3_000 + (left / WINDOW) * ANSWERS_AFTER, `${took} ms`);
    });
}
