import t from 'tap';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

/** A first process whose attempt outlasts its claim of 20 s, and the next holder of the claim, whose answers differ. */
async function overtaken(t: Parameters<typeof simulatedDeployment>[0], second: { readonly result: number; readonly after: number }) {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    await deployment.exporter(process);
    deployment.receive = () => (deployment.posts.length === 1 ? { result: 204, after: 25_000 } : second);
    const [id = ''] = await deployment.publish(process, 1);
    return { deployment, show: () => process.deliveries.show(id) };
}

t.test('a 2xx that comes while the next holder of the claim sends ends the delivery', async (t) => {
    const { deployment, show } = await overtaken(t, { result: 500, after: 10_000 });
    await deployment.advance(26_000);
    t.equal(deployment.posts.length, 2);
    t.match(await show(), {
        state: 'delivered',
        lastCode: 'delivered',
        history: [
            { number: 1, outcome: { code: 'delivered' }, late: true },
            { number: 2, outcome: { code: 'interrupted', detail: /earlier attempt/ }, late: false },
        ],
    });

    await deployment.advance(10 * 60_000);
    t.equal(deployment.posts.length, 2, 'nothing is sent a third time');
    t.match(await show(), {
        state: 'delivered',
        lastCode: 'delivered',
        history: [{ number: 1 }, { number: 2, outcome: { code: 'server_error' }, late: true }],
    });
});

t.test('a 2xx that comes after the next holder has failed ends the delivery as well', async (t) => {
    const { deployment, show } = await overtaken(t, { result: 500, after: 1_000 });
    await deployment.advance(24_000);
    t.match(await show(), { state: 'pending', history: [{}, { outcome: { code: 'server_error' } }] });
    await deployment.advance(10 * 60_000);
    t.equal(deployment.posts.length, 2);
    t.match(await show(), { state: 'delivered', history: [{ outcome: { code: 'delivered' }, late: true }, { late: false }] });
});

t.test('a 2xx that comes late changes nothing of a delivery that has ended', async (t) => {
    const { deployment, show } = await overtaken(t, { result: 410, after: 1_000 });
    await deployment.advance(10 * 60_000);
    t.match(await show(), { state: 'exhausted', lastCode: 'gone', history: [{ outcome: { code: 'delivered' }, late: true }, {}] });
});
