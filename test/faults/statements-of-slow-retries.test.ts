import t from 'tap';
import type { BegunAttempt } from '../../lib/webhooks/dispatching/reservations.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const EVENTS = 3_000;
const SECONDS = 10;

t.test('attempts that end quickly need no heartbeats of their own', async (t) => {
    const deployment = simulatedDeployment(t);
    const { deliveries } = deployment.stores;
    const heartbeats: { readonly at: number; readonly attempts: readonly BegunAttempt[] }[] = [];
    const keepAlive = deliveries.keepAlive.bind(deliveries);
    deliveries.keepAlive = (session, duration, begun) => {
        heartbeats.push({ at: deployment.now(), attempts: begun?.attempts ?? [] });
        return keepAlive(session, duration, begun);
    };
    const process = await deployment.start('only');
    await deployment.exporter(process);
    await deployment.advance(2_000);

    heartbeats.length = 0;
    for (let time = 0; time < SECONDS * 10; time += 1) {
        await deployment.publish(process, 1);
        await deployment.advance(100);
    }
    t.ok(deployment.posts.length >= SECONDS * 10);
    t.ok(heartbeats.length <= SECONDS / 2 + 1, `${heartbeats.length} heartbeats`);

    deployment.receive = () => ({ result: 204, after: 5_000 });
    const began = deployment.now();
    await deployment.publish(process, 1);
    await deployment.advance(1_000);
    const reported = heartbeats.find(({ attempts }) => attempts.length > 0);
    t.ok(reported !== undefined && reported.at - began <= 800, 'one that goes on is reported as soon as before');
});

t.test('retries to a receiver that answers late share the statements that they need', async (t) => {
    const deployment = simulatedDeployment(t);
    const { deliveries } = deployment.stores;
    const statements = { claim: 0, recordOutcomes: 0, dispatch: 0, keepAlive: 0 };
    for (const name of Object.keys(statements) as (keyof typeof statements)[]) {
        const run = deliveries[name].bind(deliveries) as (...given: unknown[]) => Promise<unknown>;
        Object.assign(deliveries, {
            [name]: async (...given: unknown[]) => {
                statements[name] += 1;
                return await run(...given);
            },
        });
    }
    const process = await deployment.start('only', { window: 100 });
    await deployment.exporter(process);
    const seen = new Set<string>();
    deployment.receive = ({ title }) => {
        const isFirst = !seen.has(title);
        seen.add(title);
        // Some are taken at once, so that the breaker stays closed.
        return isFirst ? { result: seen.size % 5 === 0 ? 204 : 500, after: 20 } : { result: 204, after: 870 + (Number(title) % 60) };
    };
    await deployment.publish(process, EVENTS);
    while (deployment.posts.length < EVENTS + 200) {
        await deployment.advance(100);
    }
    t.equal(seen.size, EVENTS, 'what goes out has been tried before');

    Object.assign(statements, { claim: 0, recordOutcomes: 0, dispatch: 0, keepAlive: 0 });
    const before = deployment.posts.length;
    await deployment.advance(SECONDS * 1_000);
    const retries = deployment.posts.length - before;
    t.ok(retries >= 60 * SECONDS, `${retries} retries`);
    const { claim, recordOutcomes, dispatch, keepAlive } = statements;
    t.ok(claim <= retries / 3, `${claim} claims`);
    t.ok(recordOutcomes <= retries / 3, `${recordOutcomes} times outcomes were recorded`);
    t.ok(dispatch <= 25 * SECONDS, `${dispatch} hand-outs`);
    t.ok(keepAlive <= 5 * SECONDS, `${keepAlive} heartbeats`);
});
