import t, { type Test } from 'tap';
import type { RecordedOutcome } from '../../lib/webhooks/deliveries/delivery-store.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

/** Exporters whose attempts run into their time limit. */
const FAILING = 64;

/** Those that are well, whose answers come one after the other. */
const HEALTHY = 16;

/** Exporters that are well beside those whose name servers never answer; all get an event a second. */
async function besideFailing(t: Test) {
    const deployment = simulatedDeployment(t);
    const { deliveries } = deployment.stores;
    const { recordOutcomes } = deliveries;
    const recorded: (readonly RecordedOutcome[])[] = [];
    Object.assign(deliveries, {
        recordOutcomes: async (...[outcomes, rules]: Parameters<typeof recordOutcomes>) => {
            recorded.push(outcomes);
            await deployment.sleep(10);
            return await recordOutcomes(outcomes, rules);
        },
    });
    const process = await deployment.start('only');
    const healthy: string[] = [];
    for (let index = 0; index < HEALTHY; index += 1) {
        healthy.push(await deployment.exporter(process));
    }
    for (let index = 0; index < FAILING; index += 1) {
        await deployment.exporter(process);
    }
    let failed = 0;
    deployment.receive = ({ exporterId }) => {
        if (healthy.includes(exporterId)) {
            return { result: 204, after: 20 + 8 * healthy.indexOf(exporterId) };
        }
        failed += 1;
        // Some of them among the successes.
        return { result: 'dns_timeout', after: Math.floor(failed / FAILING) % 2 === 0 ? 4_975 : 5_075 };
    };
    for (let second = 0; second < 20; second += 1) {
        await deployment.finish(deployment.publish(process, 1));
        await deployment.advance(1_000);
    }
    return { recorded, posts: deployment.posts.filter(({ exporterId }) => !healthy.includes(exporterId)) };
}

t.test('attempts for exporters that fail begin a few at a time', async (t) => {
    const { posts } = await besideFailing(t);
    const first = posts[0]?.at ?? Number.NaN;
    const again = posts.map(({ at }) => at).filter((at) => at > first + 5_500);
    t.ok(again.length > FAILING, `${again.length} begin after the first have failed`);
    const together = Math.max(...again.map((at) => again.filter((other) => other >= at && other < at + 5).length));
    t.ok(together <= 8, `${together} within 5 ms`);
});

t.test('failures that come together are recorded a few at a time, and keep no success waiting', async (t) => {
    const { recorded } = await besideFailing(t);
    const failures = recorded.map((outcomes) => outcomes.filter(({ health }) => health === 'failure').length);
    t.ok(failures.filter((count) => count > 1).length > 8, 'some share a statement');
    t.ok(Math.max(...failures) <= 16, `${Math.max(...failures)} in one`);
    const mixed = recorded.filter(
        (outcomes, index) => (failures[index] as number) > 0 && outcomes.some(({ health }) => health === 'success'),
    );
    t.equal(mixed.length, 0, 'and no success has to be recorded as slowly as they are');
});
