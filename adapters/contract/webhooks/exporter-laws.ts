import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { PLAIN_SETTINGS, type PlainSettings, SHOWN_TOGETHER } from '../../../lib/webhooks/exporters/plain-settings.ts';
import { assertFields, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, sampleOutcome, success, unlikeDefault, type WebhookBench } from './fixture.ts';

const FULL = {
    name: 'Ünïcode "quoted" \\ \u2028 🦉',
    url: 'http://[2001:db8::1]:8080/a?b=c',
    collector: 'west',
    type: 'investigation_legacy',
    legacy: true,
    trust: 'self-signed',
    signatures: ['hex', 'standard-webhooks'],
    headerNames: ['Authorization', 'x-"odd"'],
    state: 'stopped',
    stopReason: 'receiver answered 410 Gone',
    pausedAt: at(3),
    consecutiveFailures: 7,
    createdAt: at(1),
    updatedAt: at(2),
    sealedSecret: 'v1:one',
    previousSecrets: [
        { sealed: 'v1:two', until: at(86_400_001) },
        { sealed: 'v1:zero', until: at(5) },
    ],
    sealedHeaders: 'v1:three',
    authentication: ['basic', 'ca'],
    sealedAuthentication: 'v1:four',
    schedule: [0, 5000, 31 * 86_400_000],
} as const;

/** Of the plain settings that no other laws are about, something else than what each is by default, and that. */
const SET: Partial<PlainSettings> = Object.fromEntries(SHOWN_TOGETHER.map((name) => [name, unlikeDefault(PLAIN_SETTINGS[name])]));
const UNSET: Partial<PlainSettings> = Object.fromEntries(SHOWN_TOGETHER.map((name) => [name, PLAIN_SETTINGS[name].byDefault]));

/** Exporters as they are stored, changed and removed. */
export const exporterLaws: Laws<WebhookBench> = {
    async 'returns an exporter as it was inserted'(bench) {
        const full = await bench.addExporter({ ...FULL, ...SET });
        const plain = await bench.addExporter();
        assert.deepEqual(await bench.exporters.get(full.id), full);
        assert.deepEqual(await bench.exporters.get(plain.id), plain);
    },

    async 'answers null for an exporter that does not exist'(bench) {
        assert.equal(await bench.exporters.get(randomUUID()), null);
        assert.equal(await bench.exporters.get('no-uuid'), null);
    },

    async 'refuses a second exporter with the same id'(bench) {
        const exporter = await bench.addExporter();
        await assert.rejects(bench.exporters.insert({ ...exporter, name: 'second' }), { code: 'CONFLICT' });
        assert.deepEqual(await bench.exporters.list(), [exporter]);
    },

    async 'lists exporters oldest first'(bench) {
        const second = await bench.addExporter({ createdAt: at(20) });
        const third = await bench.addExporter({ createdAt: at(20) });
        const first = await bench.addExporter({ createdAt: at(10) });
        assert.deepEqual(await bench.exporters.list(), [first, second, third]);
    },

    async 'changes what a patch holds and nothing else'(bench) {
        const exporter = await bench.addExporter({ ...FULL, ...SET });
        const other = await bench.addExporter();
        const patch = { ...UNSET, name: '', signatures: ['base64'], schedule: null, headerNames: ['a', 'b'] } as const;
        const changed = { ...exporter, ...patch, updatedAt: at(99) };
        assert.deepEqual(await bench.update(exporter.id, patch, at(99)), changed);
        assert.deepEqual(await bench.exporters.list(), [other, changed]);
    },

    async 'forgets failures when an exporter is started'(bench) {
        const id = await breakExporter(bench);
        const stopped = await bench.update(id, { state: 'stopped' }, at(60));
        assert.equal(stopped.consecutiveFailures, 3);

        const started = await bench.update(id, { state: 'running' }, at(70));
        assert.equal(started.consecutiveFailures, 0);
        assert.equal((await bench.exporters.get(id))?.consecutiveFailures, 0);
    },

    async 'closes the breaker when an exporter is started'(bench) {
        const id = await breakExporter(bench);
        await bench.update(id, { state: 'running' }, at(200));
        assert.equal((await bench.dispatchedIds({ now: at(200) })).length, 3);
    },

    async 'refuses to change an exporter that does not exist'({ exporters }) {
        await assert.rejects(exporters.update(randomUUID(), { name: 'x' }), { code: 'NOT_FOUND' });
        await assert.rejects(exporters.update('no-uuid', { name: 'x' }), { code: 'NOT_FOUND' });
    },

    async 'changes an exporter only while it has the expected type'(bench) {
        const exporter = await bench.addExporter({ type: 'investigation_legacy' });
        const patch = { type: 'investigation_legacy_and_library', expectedType: 'investigation_legacy' } as const;
        const changed = await bench.update(exporter.id, patch, at(1));
        assert.deepEqual(changed, { ...exporter, type: 'investigation_legacy_and_library', updatedAt: at(1) });

        await assert.rejects(bench.update(exporter.id, patch, at(2)), { code: 'CONFLICT' });
        assert.deepEqual(await bench.exporters.get(exporter.id), changed);
    },

    async 'removes an exporter once'(bench) {
        const { id } = await bench.addExporter();
        const other = await bench.addExporter();
        assert.equal(await bench.remove(id, at(1)), true);
        assert.equal(await bench.remove(id, at(2)), false);
        assert.equal(await bench.remove('no-uuid', at(2)), false);
        assert.equal(await bench.exporters.get(id), null);
        assert.deepEqual(await bench.exporters.list(), [other]);
    },

    async 'cancels the active deliveries of a removed exporter'(bench) {
        const exporter = await bench.addExporter();
        const ids = await bench.publish({}, {}, {}, {});
        const [done] = await bench.claim((await bench.dispatchedIds({ window: 3 })).slice(0, 2));
        await bench.record([success(present(done))]);
        await bench.addExporter({ name: 'other' });
        const foreign = (await bench.publish()).slice(1);

        await bench.remove(exporter.id, at(77));
        const states = await Promise.all([...ids, ...foreign].map((id) => bench.deliveries.get(id)));
        assert.deepEqual(
            states.map((delivery) => [delivery?.state, delivery?.finishedAt]),
            [['delivered', at(50)], ...Array(3).fill(['cancelled', at(77)]), ['pending', null]],
        );
    },

    async 'keeps the deliveries of a removed exporter readable'(bench) {
        const exporter = await bench.addExporter({ collector: 'east' });
        const id = only(await bench.publish());
        await bench.update(exporter.id, { collector: 'west' }, at(1));
        await bench.remove(exporter.id, at(2));

        await bench.assertDelivery(id, { exporterId: exporter.id, collector: 'west' });
        assert.deepEqual(await bench.listed({ exporterId: exporter.id }), [await bench.deliveries.get(id)]);
    },

    async 'takes the claims on a removed exporter away'(bench) {
        const held = await bench.claimOne();
        await bench.remove(held.exporter.id, at(30));
        const { outcome, finishedAt } = only(await bench.deliveries.attempts(held.deliveryId));
        assert.deepEqual([outcome?.code, outcome?.timings.total, finishedAt], ['interrupted', 30, at(30)]);
        await bench.assertDelivery(held.deliveryId, { lastCode: 'interrupted' });

        assert.deepEqual(await bench.record([success(held)]), [false]);
        assertFields(only(await bench.deliveries.attempts(held.deliveryId)), { outcome: sampleOutcome('delivered'), late: true });
        await bench.assertDelivery(held.deliveryId, { state: 'cancelled' });
    },

    async 'leaves no active delivery behind when an exporter is removed while events arrive'(bench) {
        const { id } = await bench.addExporter();
        const publishing = Array.from({ length: 20 }, () => bench.publish());
        const removing = bench.remove(id, at(1));
        const accepted = (await Promise.all(publishing)).flat();
        assert.equal(await removing, true);

        const states = (await bench.listed({ exporterId: id })).map(({ state }) => state);
        assert.deepEqual(states, Array(accepted.length).fill('cancelled'));
    },

    async 'changes a secret only while it is the expected one, so that none is lost'(bench) {
        const exporter = await bench.addExporter({ sealedSecret: 'one' });
        const change = (sealedSecret: string, expectedSecret: string) => {
            const previousSecrets = [{ sealed: expectedSecret, until: at(86_400_000) }];
            return bench.exporters.update(exporter.id, { sealedSecret, previousSecrets, expectedSecret });
        };
        const results = await Promise.allSettled([change('two', 'one'), change('three', 'one')]);
        assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
        const { sealedSecret } = present(await bench.exporters.get(exporter.id));
        await assert.rejects(change('four', 'one'), { code: 'CONFLICT' });
        await change('four', sealedSecret);
        assertFields(await bench.exporters.get(exporter.id), {
            sealedSecret: 'four',
            previousSecrets: [{ sealed: sealedSecret, until: at(86_400_000) }],
        });
    },

    async 'changes an exporter only while it has the expected headers, so that none goes elsewhere'(bench) {
        const { id } = await bench.addExporter();
        const change = (url: string, expectedHeaders: string | null) => bench.exporters.update(id, { url, expectedHeaders });
        await change('https://other.example/one', null);
        await bench.exporters.update(id, { sealedHeaders: 'sealed', headerNames: ['Authorization'] });
        await assert.rejects(change('https://third.example/two', null), { code: 'CONFLICT' });
        await assert.rejects(change('https://third.example/two', 'others'), { code: 'CONFLICT' });
        assertFields(await bench.exporters.get(id), { url: 'https://other.example/one', sealedHeaders: 'sealed' });
        assertFields(await change('https://third.example/two', 'sealed'), { url: 'https://third.example/two' });
    },

    async 'changes an exporter only while its format has the expected secret, so that none comes back'(bench) {
        const { id } = await bench.addExporter();
        const change = (name: string, expectedFormatSecret: string | null) => bench.exporters.update(id, { name, expectedFormatSecret });
        await change('one', null);
        await bench.exporters.update(id, { sealedFormatSecret: 'sealed' });
        await assert.rejects(change('two', null), { code: 'CONFLICT' });
        await assert.rejects(change('two', 'another'), { code: 'CONFLICT' });
        assertFields(await bench.exporters.get(id), { name: 'one', sealedFormatSecret: 'sealed' });
        assertFields(await change('two', 'sealed'), { name: 'two' });
        await assert.rejects(bench.exporters.update(randomUUID(), { expectedFormatSecret: null }), { code: 'NOT_FOUND' });
    },

    async 'changes an exporter only while it authenticates by what is expected, so that no credential is lost or goes elsewhere'(bench) {
        const { id } = await bench.addExporter();
        const change = (name: string, expectedAuthentication: string | null) =>
            bench.exporters.update(id, { name, expectedAuthentication });
        await change('one', null);
        await bench.exporters.update(id, { sealedAuthentication: 'sealed', authentication: ['basic'] });
        await assert.rejects(change('two', null), { code: 'CONFLICT' });
        await assert.rejects(change('two', 'another'), { code: 'CONFLICT' });
        assertFields(await bench.exporters.get(id), { name: 'one', authentication: ['basic'], sealedAuthentication: 'sealed' });
        assertFields(await change('two', 'sealed'), { name: 'two' });
        await assert.rejects(bench.exporters.update(randomUUID(), { expectedAuthentication: null }), { code: 'NOT_FOUND' });
    },

    async 'changes a URL only while it is the expected one, so that none comes back'(bench) {
        const { id } = await bench.addExporter({ url: 'https://first.example/' });
        await assert.rejects(bench.exporters.update(id, { url: 'v1.k.sealed', expectedUrl: 'https://other.example/' }), {
            code: 'CONFLICT',
        });
        assertFields(await bench.exporters.get(id), { url: 'https://first.example/' });
        assertFields(await bench.exporters.update(id, { url: 'v1.k.sealed', expectedUrl: 'https://first.example/' }), {
            url: 'v1.k.sealed',
        });
        await assert.rejects(bench.exporters.update(randomUUID(), { url: 'x', expectedUrl: 'y' }), { code: 'NOT_FOUND' });
    },
};

/** An exporter with three failures and three deliveries, that is probed again at 1,125. */
async function breakExporter(bench: WebhookBench): Promise<string> {
    const { id } = await bench.addExporter();
    await bench.publish({}, {}, {});
    await bench.failInTurn(3, 100);
    return id;
}
