import t, { type Test } from 'tap';
import { type Answer, type SimulatedDeployment, simulatedDeployment } from '../support/simulated-deployment.ts';

const SECOND = 1_000;

/** An exporter with 300 deliveries whose receiver gives this answer until it has been given so many, and then takes all. */
async function pausing(t: Test, answer: Answer, count = 50) {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    const id = await deployment.exporter(process);
    const posts = () => deployment.posts.filter(({ exporterId }) => exporterId === id);
    deployment.receive = ({ exporterId }) => (exporterId === id && posts().length <= count ? answer : { result: 204 });
    await deployment.publish(process, 300);
    await deployment.advance(SECOND);
    return { deployment, process, id, posts, exporter: () => process.exporters.get(id) };
}

/** How many POSTs began in each 50 ms in which any did. */
function rounds(posts: SimulatedDeployment['posts']): number[] {
    const counts: number[] = [];
    let end = 0;
    for (const { at } of posts) {
        if (at >= end) {
            counts.push(0);
            end = at + 50;
        }
        counts.push((counts.pop() ?? 0) + 1);
    }
    return counts;
}

for (const [answer, pause] of [
    [{ result: 429, retryAfter: 60 * SECOND }, 60],
    [{ result: 503, retryAfter: 60 * SECOND }, 60],
    [{ result: 429, retryAfter: 2 * SECOND }, 2],
    [{ result: 429 }, 5],
    // As of a date that has passed: it names no time, and a pause of none would be one POST after the other.
    [{ result: 429, retryAfter: 0 }, 5],
    [{ result: 503, retryAfter: 0 }, 5],
] as const) {
    const title = `${answer.result} ${'retryAfter' in answer ? `with Retry-After: ${answer.retryAfter / SECOND}` : 'without Retry-After'}`;
    t.test(`${title} pauses the exporter for ${pause} s, then comes one probe, then a slow start`, async (t) => {
        const { deployment, posts, exporter } = await pausing(t, answer);
        t.equal(posts().length, 50, 'what was in flight');
        t.match(await exporter(), { state: 'running', consecutiveFailures: 0 });

        await deployment.advance((pause - 1.1) * SECOND);
        t.equal(posts().length, 50, 'nothing until the pause is over');
        await deployment.advance(10 * SECOND);
        t.strictSame(await deployment.states(), { delivered: 300 });
        const after = posts().slice(50);
        t.ok((after[0]?.at ?? 0) >= pause * SECOND);
        t.strictSame(rounds(after).slice(0, 6), [1, 2, 4, 8, 16, 32]);
        t.match(await exporter(), { state: 'running', consecutiveFailures: 0 });
    });
}

t.test('a probe that is answered 429 pauses the exporter once more', async (t) => {
    const { deployment, posts } = await pausing(t, { result: 429, retryAfter: 10 * SECOND }, 53);
    await deployment.advance(60 * SECOND);
    t.strictSame(await deployment.states(), { delivered: 300 });
    const [first = 0, second = 0, third = 0, fourth = 0, next = 0] = posts()
        .slice(50)
        .map(({ at }) => at / SECOND);
    for (const gap of [second - first, third - second, fourth - third]) {
        t.ok(gap >= 10 && gap <= 11.1, `one probe in 10 s: ${gap}`);
    }
    t.ok(next - fourth < 1);
});

t.test('a 2xx of an attempt that began before does not end the pause', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    await deployment.exporter(process);
    deployment.receive = () => (deployment.posts.length % 5 === 0 ? { result: 204, after: 200 } : { result: 429, retryAfter: 60 * SECOND });
    await deployment.publish(process, 300);
    await deployment.advance(58 * SECOND);
    t.equal(deployment.posts.length, 50, 'what was in flight, and nothing until the pause is over');
    t.strictSame(await deployment.states(), { pending: 290, delivered: 10 });
    deployment.receive = () => ({ result: 204 });
    await deployment.advance(12 * SECOND);
    t.strictSame(await deployment.states(), { delivered: 300 });
    t.strictSame(rounds(deployment.posts.slice(50)).slice(0, 4), [1, 2, 4, 8]);
});

t.test('other exporters go on meanwhile, and a test of the paused one does not wait', async (t) => {
    const { deployment, process, id, posts } = await pausing(t, { result: 429, retryAfter: 600 * SECOND });
    const other = await deployment.exporter(process);
    await deployment.publish(process, 200);
    await deployment.advance(5 * SECOND);
    t.equal(deployment.posts.filter(({ exporterId }) => exporterId === other).length, 200);
    t.equal(posts().length, 50);
    t.match(await deployment.finish(process.exporters.test(id)), { attempt: { outcome: { code: 'delivered' } } });
    await deployment.advance(5 * SECOND);
    t.equal(posts().length, 50, 'a test that succeeds says nothing about the pause');
});

for (const answer of [{ result: 429, retryAfter: 60 * SECOND }, { result: 503, retryAfter: 60 * SECOND }, { result: 429 }] as const) {
    t.test(`who has answered nothing but ${JSON.stringify(answer)} for stopAfter is stopped, as it was said before`, async (t) => {
        const deployment = simulatedDeployment(t);
        const process = await deployment.start('only', { stopAfter: 1_800 * SECOND });
        const id = await deployment.exporter(process);
        deployment.receive = () => answer;
        await deployment.publish(process, 20);
        await deployment.advance(1_790 * SECOND);
        const { state, health } = await process.exporters.show(id);
        t.equal(state, 'running');
        t.ok(health.stopsAt !== null && health.stopsAt > health.at);
        // By then the third try of some is due.
        await deployment.advance(400 * SECOND);
        t.match(await process.exporters.show(id), {
            state: 'stopped',
            stopReason: /has taken nothing for too long/,
            health: { stopsAt: null },
        });
    });
}
