import { spawn } from 'node:child_process';
import { once } from 'node:events';
import t, { type Test } from 'tap';
import { memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { endFormerHolders } from '../../adapters/pglite/embedded-database.ts';
import { postgresWebhooks } from '../../adapters/postgres/index.ts';
import type { DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import type { Session } from '../../lib/webhooks/dispatching/worker-session.ts';
import { openSimulatedDatabase } from '../simulation/stores.ts';
import { type SimulatedStores, START, simulatedDeployment } from '../support/simulated-deployment.ts';

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

/** What a process leaves to the next one. */
interface Left {
    readonly stores: SimulatedStores;
    /** Makes it known to the next one that the process has ended. */
    reopen(session: Session): Promise<void>;
}

function inMemory(t: Test, stores: SimulatedStores): Left {
    return {
        stores,
        reopen: async (session) => {
            await stores.deliveries.keepAlive({ ...session, process: await endedIdentity(t, session) }, 7_500);
        },
    };
}

const database = await openSimulatedDatabase();
t.teardown(() => database.close());

const STORES: Readonly<Record<string, (t: Test, clock: () => Date) => Promise<Left>>> = {
    memory: async (t, clock) => inMemory(t, memoryWebhooks({ clock })),

    async 'stores that name no silent sessions'(t, clock) {
        const { deliveries, ...others } = memoryWebhooks({ clock });
        return inMemory(t, { ...others, deliveries: { ...deliveries, namesSilent: false, sessions: () => deliveries.sessions() } });
    },

    async 'the embedded database'(t, clock) {
        const { now } = Date;
        // It asks this for the time.
        Date.now = () => clock().getTime();
        t.teardown(() => Object.assign(Date, { now }));
        await database.pool.query('select public.begin_anew()');
        return { stores: postgresWebhooks({ pool: database.pool }), reopen: () => endFormerHolders(database.pool) };
    },
};

const ANSWERS_AFTER = 200;
const WINDOW = 200;
const COUNT = 500;

for (const [name, make] of Object.entries(STORES)) {
    // The last is long after its session has gone silent.
    for (const away of [0, 1_000, 20_000]) {
        t.test(`what a process with its own queue left in ${name} is sent soon after a start ${away} ms after it was killed`, async (t) => {
            let now = (): number => 0;
            const { stores, reopen } = await make(t, () => new Date(START + now()));
            const deployment = simulatedDeployment(t, stores);
            now = deployment.now;
            deployment.receive = () => ({ result: 204, after: ANSWERS_AFTER });
            const jobs = ownQueue();
            const first = await deployment.start('first', { queue: jobs.queue, window: WINDOW });
            await deployment.exporter(first);
            await deployment.advance(2_500);
            await deployment.publish(first, COUNT);
            await deployment.advance(150);
            const [session] = (await stores.deliveries.sessions()) as [Session];
            jobs.kill();
            first.kill();
            const left = COUNT - ((await deployment.states()).delivered ?? 0);
            t.match(await deployment.states(), { queued: WINDOW });
            await deployment.advance(away);

            await reopen(session);
            await deployment.start('next', { queue: memoryQueue(), window: WINDOW });
            const started = deployment.now();
            while ((await deployment.states()).delivered !== COUNT && deployment.now() < started + 20_000) {
                await deployment.advance(50);
            }
            const took = deployment.now() - started;
            t.ok(took <= 2_000 + (left / WINDOW) * ANSWERS_AFTER, `${took} ms`);
        });
    }
}
