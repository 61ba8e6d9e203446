import t from 'tap';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const SECOND = 1_000;
/** What a store might refuse to keep, while it keeps all else. */
const REFUSED = 'Simulated';

for (const [result, ends] of [
    [503, { state: 'exhausted', lastCode: 'invalid_exporter' }],
    [204, { state: 'delivered', lastCode: 'delivered' }],
] as const) {
    t.test(`an outcome of ${result} that the store refuses ends its delivery, and is not tried for ever`, async (t) => {
        const deployment = simulatedDeployment(t);
        const { deliveries } = deployment.stores;
        const { recordOutcomes } = deliveries;
        let refusals = 0;
        let refused = '';
        Object.assign(deliveries, {
            recordOutcomes: async (...[outcomes, rules]: Parameters<typeof recordOutcomes>) => {
                if (outcomes.some(({ exporterId, outcome }) => exporterId === refused && outcome.detail.startsWith(REFUSED))) {
                    refusals += 1;
                    throw new Error('invalid byte sequence');
                }
                return await recordOutcomes(outcomes, rules);
            },
        });
        const process = await deployment.start('only');
        refused = await deployment.exporter(process);
        await deployment.exporter(process);
        deployment.receive = ({ exporterId }) => ({ result: exporterId === refused ? result : 204 });
        await deployment.publish(process, 1);
        await deployment.advance(10 * SECOND);
        const [{ id = '' } = {}] = await process.deliveries.list({ exporterId: refused });
        const shown = await process.deliveries.show(id);
        t.match(shown, { ...ends, attempts: 1, history: [{ outcome: { detail: /^The store could not keep what the attempt came to/ } }] });
        t.ok(refusals >= 5 && refusals <= 10, `tried again, as the store may have been to blame: ${refusals}`);
        t.equal(deployment.posts.length, 2, 'nothing is sent twice');

        refused = '';
        await deployment.publish(process, 1);
        await deployment.advance(SECOND);
        t.equal(deployment.posts.length, 4, 'and the exporter goes on');
    });
}

t.test('an outcome waits for a store that is away however long that is', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    await deployment.exporter(process);
    deployment.receive = () => {
        deployment.storeIsAway = true;
        return { result: 204 };
    };
    await deployment.publish(process, 1);
    await deployment.advance(15 * SECOND);
    deployment.storeIsAway = false;
    await deployment.advance(5 * SECOND);
    const [{ id = '' } = {}] = (await process.deliveries.list({ state: 'delivered' })).filter(({ kind }) => kind !== 'test');
    t.match((await process.deliveries.show(id)).history, [{ outcome: { code: 'delivered', detail: 'Simulated 204' } }]);
    t.equal(deployment.posts.length, 1);
});
