import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Laws } from '../announce.ts';
import {
    addExporter,
    at,
    claim,
    claimOne,
    dispatchedIds,
    failure,
    only,
    publish,
    type sampleExporter,
    sampleOutcome,
    success,
    type WebhookStores,
} from './fixture.ts';

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
    consecutiveFailures: 7,
    createdAt: at(1),
    updatedAt: at(2),
    sealedSecret: 'v1:one',
    sealedPreviousSecret: 'v1:two',
    previousSecretUntil: at(86_400_001),
    sealedHeaders: 'v1:three',
    schedule: [0, 5000, 31 * 86_400_000],
} as const;

/** Exporters as they are stored, changed and removed. */
export const exporterLaws: Laws<WebhookStores> = {
    async 'returns an exporter as it was inserted'(stores) {
        const full = await addExporter(stores, FULL);
        const plain = await addExporter(stores);
        assert.deepEqual(await stores.exporters.get(full.id), full);
        assert.deepEqual(await stores.exporters.get(plain.id), plain);
    },

    async 'answers null for an exporter that does not exist'(stores) {
        assert.equal(await stores.exporters.get(randomUUID()), null);
        assert.equal(await stores.exporters.get('no-uuid'), null);
    },

    async 'refuses a second exporter with the same id'(stores) {
        const exporter = await addExporter(stores);
        await assert.rejects(stores.exporters.insert({ ...exporter, name: 'second' }), { code: 'CONFLICT' });
        assert.deepEqual(await stores.exporters.list(), [exporter]);
    },

    async 'lists exporters oldest first'(stores) {
        const second = await addExporter(stores, { createdAt: at(20) });
        const third = await addExporter(stores, { createdAt: at(20) });
        const first = await addExporter(stores, { createdAt: at(10) });
        assert.deepEqual(await stores.exporters.list(), [first, second, third]);
    },

    async 'changes what a patch holds and nothing else'(stores) {
        const exporter = await addExporter(stores, FULL);
        const other = await addExporter(stores);
        const changed = {
            ...exporter,
            name: '',
            signatures: ['base64'],
            schedule: null,
            headerNames: ['a', 'b'],
            updatedAt: at(99),
        } as const;
        const { name, signatures, schedule, headerNames } = changed;
        assert.deepEqual(await stores.exporters.update(exporter.id, { name, signatures, schedule, headerNames }, at(99)), changed);
        assert.deepEqual(await stores.exporters.list(), [other, changed]);
    },

    async 'forgets failures when an exporter is started'(stores) {
        const { id } = await failingExporter(stores);
        const stopped = await stores.exporters.update(id, { state: 'stopped' }, at(60));
        assert.equal(stopped.consecutiveFailures, 3);

        const started = await stores.exporters.update(id, { state: 'running' }, at(70));
        assert.equal(started.consecutiveFailures, 0);
        assert.equal((await stores.exporters.get(id))?.consecutiveFailures, 0);
    },

    async 'closes the breaker when an exporter is started'(stores) {
        const { id } = await failingExporter(stores);
        await stores.exporters.update(id, { state: 'running' }, at(70));
        await failDue(stores, 3);
        assert.equal((await dispatchedIds(stores, { now: at(200) })).length, 1, 'the old probe time is forgotten');
    },

    async 'refuses to change an exporter that does not exist'({ exporters }) {
        await assert.rejects(exporters.update(randomUUID(), { name: 'x' }, at(0)), { code: 'NOT_FOUND' });
        await assert.rejects(exporters.update('no-uuid', { name: 'x' }, at(0)), { code: 'NOT_FOUND' });
    },

    async 'changes an exporter only while it has the expected type'(stores) {
        const exporter = await addExporter(stores, { type: 'investigation_legacy' });
        const patch = { type: 'investigation_legacy_and_library', ifType: 'investigation_legacy' } as const;
        const changed = await stores.exporters.update(exporter.id, patch, at(1));
        assert.deepEqual(changed, { ...exporter, type: 'investigation_legacy_and_library', updatedAt: at(1) });

        await assert.rejects(stores.exporters.update(exporter.id, patch, at(2)), { code: 'CONFLICT' });
        assert.deepEqual(await stores.exporters.get(exporter.id), changed);
    },

    async 'removes an exporter once'(stores) {
        const { id } = await addExporter(stores);
        const other = await addExporter(stores);
        assert.equal(await stores.exporters.remove(id, at(1)), true);
        assert.equal(await stores.exporters.remove(id, at(2)), false);
        assert.equal(await stores.exporters.remove('no-uuid', at(2)), false);
        assert.equal(await stores.exporters.get(id), null);
        assert.deepEqual(await stores.exporters.list(), [other]);
    },

    async 'cancels the unfinished deliveries of a removed exporter'(stores) {
        const exporter = await addExporter(stores);
        const ids = await publish(stores, {}, {}, {}, {});
        const [done, sending] = await claim(stores, (await dispatchedIds(stores, { window: 3 })).slice(0, 2));
        assert.ok(done !== undefined && sending !== undefined);
        await stores.deliveries.recordOutcomes([success(done)]);
        await addExporter(stores, { name: 'other' });
        const foreign = (await publish(stores)).slice(1);

        await stores.exporters.remove(exporter.id, at(77));
        const states = await Promise.all([...ids, ...foreign].map((id) => stores.deliveries.get(id)));
        assert.deepEqual(
            states.map((delivery) => [delivery?.state, delivery?.finishedAt]),
            [['delivered', at(50)], ...Array(3).fill(['cancelled', at(77)]), ['pending', null]],
        );
    },

    async 'keeps the deliveries of a removed exporter readable'(stores) {
        const exporter = await addExporter(stores, { collector: 'east' });
        const id = only(await publish(stores));
        await stores.exporters.update(exporter.id, { collector: 'west' }, at(1));
        await stores.exporters.remove(exporter.id, at(2));

        const delivery = await stores.deliveries.get(id);
        assert.deepEqual([delivery?.exporterId, delivery?.collector], [exporter.id, 'west']);
        assert.deepEqual(await stores.deliveries.list({ exporterId: exporter.id, limit: 9 }), [delivery]);
    },

    async 'takes the claims on a removed exporter away'(stores) {
        const held = await claimOne(stores);
        await stores.exporters.remove(held.exporter.id, at(30));
        const [interrupted] = await stores.deliveries.attempts(held.deliveryId);
        assert.deepEqual(
            [interrupted?.outcome?.code, interrupted?.outcome?.timings.total, interrupted?.finishedAt],
            ['interrupted', 30, at(30)],
        );
        assert.equal((await stores.deliveries.get(held.deliveryId))?.lastCode, 'interrupted');

        assert.deepEqual(await stores.deliveries.recordOutcomes([success(held)]), [false]);
        const late = only(await stores.deliveries.attempts(held.deliveryId));
        assert.deepEqual([late.outcome, late.late], [sampleOutcome('delivered'), true]);
        assert.equal((await stores.deliveries.get(held.deliveryId))?.state, 'cancelled');
    },

    async 'leaves no unfinished delivery behind when an exporter is removed while events arrive'(stores) {
        const { id } = await addExporter(stores);
        const publishing = Array.from({ length: 20 }, () => publish(stores));
        const removing = stores.exporters.remove(id, at(1));
        const accepted = (await Promise.all(publishing)).flat();
        assert.equal(await removing, true);

        const listed = await stores.deliveries.list({ exporterId: id, limit: 100 });
        assert.equal(listed.length, accepted.length);
        assert.deepEqual(
            listed.filter(({ state }) => state !== 'cancelled'),
            [],
        );
    },
};

/** An exporter with three failures, that is probed again at 1,000. */
async function failingExporter(stores: WebhookStores): Promise<ReturnType<typeof sampleExporter>> {
    const exporter = await addExporter(stores);
    await publish(stores, {}, {}, {});
    const claims = await claim(stores, await dispatchedIds(stores));
    await stores.deliveries.recordOutcomes(claims.map((one) => failure(one, at(100), { probeAt: at(1000) })));
    return exporter;
}

/** Lets so many due deliveries fail, without a new time for the probe. */
async function failDue(stores: WebhookStores, count: number): Promise<void> {
    const claims = await claim(stores, await dispatchedIds(stores, { now: at(150), limit: count }), at(150));
    assert.equal(claims.length, count);
    await stores.deliveries.recordOutcomes(claims.map((one) => failure(one, at(160))));
}
