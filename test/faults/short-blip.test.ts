import t from 'tap';
import { memoryQueue } from '../../adapters/memory/index.ts';
import type { DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { type SimulatedDeployment, simulatedDeployment } from '../support/simulated-deployment.ts';

const BACK = 3_000;

/** How many POSTs began in each round of answers, which take 50 ms, from a moment on. */
function rounds({ posts }: SimulatedDeployment, from: number): number[] {
    const counts: number[] = [];
    let roundEnds = 0;
    for (const { at } of posts.filter((post) => post.at >= from)) {
        if (at >= roundEnds) {
            counts.push(0);
            roundEnds = at + 50;
        }
        counts.push((counts.pop() ?? 0) + 1);
    }
    return counts;
}

/** A deployment whose receiver refuses for three seconds, with an exporter that has 300 deliveries. */
async function refused(t: Parameters<typeof simulatedDeployment>[0], options: Parameters<SimulatedDeployment['start']>[1] = {}) {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only', options);
    const id = await deployment.exporter(process);
    const back = deployment.now() + BACK;
    deployment.receive = ({ at }) => (at < back ? { result: 'connect_refused', after: 2 } : { result: 204 });
    await deployment.publish(process, 300);
    return { deployment, back, exporter: () => process.exporters.get(id), process };
}

t.test('50 attempts in flight that fail at once are one failure', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    const id = await deployment.exporter(process);
    deployment.receive = () => ({ result: 'connection_reset', after: 2_000 });
    await deployment.publish(process, 50);
    await deployment.advance(2_500);
    t.equal(deployment.posts.length, 50);
    t.match(await process.exporters.get(id), { state: 'running', consecutiveFailures: 1 });
    t.strictSame(await deployment.states(), { pending: 50 });
});

for (const [breaker, options] of [
    ['closed', {}],
    ['open', { breakerAfter: 3 }],
] as const) {
    t.test(`300 deliveries are through 10 s after the receiver is back, by a breaker that is ${breaker}`, async (t) => {
        const { deployment, exporter } = await refused(t, options);
        await deployment.advance(BACK);
        t.equal((await exporter()).consecutiveFailures >= 3, true);
        t.notMatch(await deployment.states(), { delivered: Number });
        await deployment.advance(10_000);
        t.strictSame(await deployment.states(), { delivered: 300 });
        t.match(await exporter(), { state: 'running', consecutiveFailures: 0 });
    });
}

t.test('what was on its way to a worker when the breaker opened delays the first probe no further', async (t) => {
    const deployment = simulatedDeployment(t);
    const inTurn = memoryQueue();
    const queue: DeliveryQueue = {
        ...inTurn,
        // A worker takes one job after the other.
        add: async (jobs) => jobs.forEach((job, index) => void deployment.sleep(1 + index).then(() => inTurn.add([job]))),
    };
    const process = await deployment.start('only', { queue });
    const id = await deployment.exporter(process);
    const back = deployment.now() + BACK;
    deployment.receive = ({ at }) => (at < back ? { result: 'connect_refused', after: 2 } : { result: 204 });
    await deployment.publish(process, 300);
    await deployment.advance(BACK);
    t.match(await process.exporters.get(id), { consecutiveFailures: 10 });
    await deployment.advance(10_000);
    t.strictSame(await deployment.states(), { delivered: 300 });
});

t.test('an open breaker lets one probe through at a time, and a slow start follows the first success', async (t) => {
    const { deployment, back, exporter } = await refused(t, { breakerAfter: 3 });
    await deployment.advance(BACK + 10_000);
    t.strictSame(rounds(deployment, back).slice(0, 6), [1, 2, 4, 8, 16, 32]);
    t.ok(Math.max(...rounds(deployment, back)) <= 50);
    t.match(await exporter(), { consecutiveFailures: 0 });
});

t.test('probes of a receiver that stays away come 5, 10, 20 s … 5 min apart', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only', { breakerAfter: 1 });
    await deployment.exporter(process);
    deployment.receive = () => ({ result: 'connect_refused', after: 2 });
    await deployment.publish(process, 20);
    await deployment.advance(1_000);
    t.equal(deployment.posts.length, 20, 'all that the window holds');
    await deployment.advance(40 * 60_000);
    const probes = deployment.posts.slice(19).map(({ at }) => at);
    for (const [index, least] of [5, 10, 20, 40, 80, 160, 300, 300].entries()) {
        const gap = ((probes[index + 1] ?? 0) - (probes[index] ?? 0)) / 1000;
        t.ok(gap >= least && gap <= least + 1.1, `${least} s: ${gap}`);
    }
});

t.test('a failure in the slow start opens the breaker at once', async (t) => {
    const { deployment, back, exporter } = await refused(t, { breakerAfter: 3 });
    const { receive } = deployment;
    await deployment.advance(BACK);
    deployment.receive = (post) => (rounds(deployment, back).length === 3 ? { result: 500 } : receive(post));
    await deployment.advance(4_000);
    t.strictSame(rounds(deployment, back), [1, 2, 4]);
    t.match(await exporter(), { consecutiveFailures: 3 });
});

t.test('an exporter that has failed for `stopAfter` is stopped, and not before', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only', { breakerAfter: 1, stopAfter: 30 * 60_000 });
    const id = await deployment.exporter(process);
    deployment.receive = () => ({ result: 503 });
    await deployment.publish(process, 20);
    await deployment.advance(28 * 60_000);
    t.match(await process.exporters.get(id), { state: 'running' });
    await deployment.advance(10 * 60_000);
    t.match(await process.exporters.get(id), { state: 'stopped', stopReason: /taken nothing for too long/ });
});
