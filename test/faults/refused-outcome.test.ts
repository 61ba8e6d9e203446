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
                    throw Object.assign(new Error('invalid byte sequence'), { code: '22021' });
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

t.test('an outcome that cannot be stored for another reason than what it is, is tried until it can be', async (t) => {
    const deployment = simulatedDeployment(t);
    const { deliveries } = deployment.stores;
    const { recordOutcomes } = deliveries;
    let fails = true;
    // No file handle for a connection, a certificate that has ended, a role without a password: nothing that tells of the outcome.
    const causes = ['EMFILE', 'CERT_HAS_EXPIRED', '28P01', 'XX001', undefined];
    let tries = 0;
    Object.assign(deliveries, {
        recordOutcomes: async (...given: Parameters<typeof recordOutcomes>) => {
            if (fails) {
                throw Object.assign(new Error('not now'), { code: causes[tries++ % causes.length] });
            }
            return await recordOutcomes(...given);
        },
    });
    const process = await deployment.start('only');
    await deployment.exporter(process);
    deployment.receive = () => ({ result: 503 });
    await deployment.publish(process, 1);
    await deployment.advance(15 * SECOND);
    t.ok(tries >= 10, `${tries} tries`);
    fails = false;
    await deployment.advance(2 * SECOND);
    const [{ id = '' } = {}] = (await process.deliveries.list()).filter(({ kind }) => kind !== 'test');
    const shown = await process.deliveries.show(id);
    t.not(shown.state, 'exhausted');
    t.match(shown.history, [{ outcome: { detail: 'Simulated 503' } }]);
});
