import t, { type Test } from 'tap';
import type { StoredExporter } from '../../lib/webhooks/exporters/exporter.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const MINUTE = 60_000;

/** A deployment of which one exporter has this in its row, and what has become of its only delivery since. */
async function withStored(t: Test, stored: object) {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    const [unusable] = [await deployment.exporter(process), await deployment.exporter(process)];
    await deployment.stores.exporters.update(unusable, stored as Partial<StoredExporter>);
    await deployment.publish(process, 1);
    await deployment.advance(MINUTE);
    const [{ id = '' } = {}] = (await process.deliveries.list({ exporterId: unusable })).filter(({ kind }) => kind !== 'test');
    return { deployment, delivery: await process.deliveries.show(id) };
}

/** What no operation stores, but a hand in the database may, and the reason that is given for it. */
const UNUSABLE: readonly (readonly [stored: object, reason: RegExp])[] = [
    [{ url: 'gibberish' }, /^Cannot open a text that is not sealed/],
    [{ url: 'v1.k' }, /^Cannot open a text that is not sealed/],
    [{ sealedSecret: '' }, /^Cannot open a text that is not sealed/],
    [{ signatures: {} }, /^Signatures must be a list of base64/],
    [{ signatures: null }, /^Signatures must be a list of base64/],
    [{ signatures: ['rot13'] }, /^Signatures must be a list of base64/],
];

for (const [stored, reason] of UNUSABLE) {
    t.test(`deliveries of an exporter with ${JSON.stringify(stored)} end with the reason, and others go on`, async (t) => {
        const { deployment, delivery } = await withStored(t, stored);
        t.match(delivery, { state: 'exhausted', attempts: 1, lastCode: 'invalid_exporter' });
        t.match(delivery.history, [{ outcome: { code: 'invalid_exporter', detail: reason } }]);
        t.strictSame(await deployment.states(), { delivered: 1, exhausted: 1 });
        t.equal(deployment.posts.length, 1);
    });
}

for (const url of ['v1.unknown.AAAA', 'v2.k.AAAA']) {
    t.test(`what another process may open, as ${url}, waits for it`, async (t) => {
        const { delivery } = await withStored(t, { url });
        t.match(delivery, { state: 'pending', lastCode: 'interrupted' });
    });
}
