import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Claim } from '../../../lib/webhooks/store.ts';
import type { Laws } from '../announce.ts';
import {
    addExporter,
    at,
    claim,
    claimOne,
    dispatchedIds,
    failure,
    inParallel,
    nth,
    only,
    publish,
    publishTest,
    sampleOutcome,
    success,
    type WebhookStores,
} from './fixture.ts';

/** What an outcome changes, and whose outcome counts. */
export const outcomeLaws: Laws<WebhookStores> = {
    async 'records what was delivered'(stores) {
        const held = await claimOne(stores);
        assert.deepEqual(await stores.deliveries.recordOutcomes([success(held)]), [true]);
        const delivery = await stores.deliveries.get(held.deliveryId);
        assert.deepEqual(
            [delivery?.state, delivery?.finishedAt, delivery?.lastCode, delivery?.attempts],
            ['delivered', at(50), 'delivered', 1],
        );
        assert.deepEqual(await stores.deliveries.attempts(held.deliveryId), [
            { number: 1, startedAt: at(0), finishedAt: at(50), outcome: sampleOutcome('delivered'), late: false },
        ]);
    },

    async 'plans the next try'(stores) {
        const held = await claimOne(stores);
        await stores.deliveries.recordOutcomes([failure(held, at(5000))]);
        const delivery = await stores.deliveries.get(held.deliveryId);
        assert.deepEqual([delivery?.state, delivery?.dueAt, delivery?.finishedAt], ['pending', at(5000), null]);
        assert.equal(delivery?.lastCode, 'connect_refused');
        assert.deepEqual(await dispatchedIds(stores, { now: at(4999) }), []);
        assert.deepEqual(await dispatchedIds(stores, { now: at(5000) }), [held.deliveryId]);
    },

    async 'records what is exhausted'(stores) {
        const held = await claimOne(stores);
        await stores.deliveries.recordOutcomes([failure(held, at(0), { next: { state: 'exhausted' } })]);
        const delivery = await stores.deliveries.get(held.deliveryId);
        assert.deepEqual([delivery?.state, delivery?.finishedAt, delivery?.lastCode], ['exhausted', at(50), 'connect_refused']);
        assert.deepEqual(await dispatchedIds(stores, { now: at(9999) }), []);
    },

    async 'keeps an outcome exactly'(stores) {
        const outcome = sampleOutcome('server_error', {
            status: 503,
            detail: 'control \u0000\u001b, lone \ud83d, pair 🦉, quotes "\\\'',
            retryAfter: 86_400_000,
            timings: { dns: 0, connect: null, tls: 12, firstByte: 345, total: 15_000 },
            address: '2001:db8::1',
            fingerprint: 'AA:BB',
        });
        const held = await claimOne(stores);
        assert.deepEqual(await stores.deliveries.recordOutcomes([failure(held, at(9), { outcome })]), [true]);
        assert.deepEqual(only(await stores.deliveries.attempts(held.deliveryId)).outcome, outcome);
    },

    async 'answers outcomes in the order given'(stores) {
        const claims = await claimMany(stores, 4);
        const [first, second, third, fourth] = claims.map((one) => success(one)).reverse();
        assert.ok(first !== undefined && second !== undefined && third !== undefined && fourth !== undefined);
        const outcomes = [first, { ...second, token: 'foreign' }, third, { ...fourth, deliveryId: 'no-uuid' }];
        assert.deepEqual(await stores.deliveries.recordOutcomes(outcomes), [true, false, true, false]);
        assert.deepEqual(
            (await stores.deliveries.list({ state: 'delivered', limit: 9 })).map(({ id }) => id).sort(),
            [first, third].map(({ deliveryId }) => deliveryId).sort(),
        );
    },

    async 'changes nothing for a token that never held the claim'(stores) {
        const held = await claimOne(stores);
        const before = await snapshot(stores, held);
        const foreign = failure(held, at(9), { token: randomUUID(), stopReason: 'not to be' });
        assert.deepEqual(await stores.deliveries.recordOutcomes([foreign]), [false]);
        assert.deepEqual(await snapshot(stores, held), before);
        assert.deepEqual(await stores.deliveries.recordOutcomes([success(held)]), [true]);
    },

    async 'completes only the attempt when the claim was lost'(stores) {
        const lost = await claimOne(stores);
        await sweepAll(stores);
        const [delivery, exporter] = await snapshot(stores, lost);

        const late = failure(lost, at(1), { finishedAt: at(70_000), probeAt: at(99_000), stopReason: 'not to be' });
        assert.deepEqual(await stores.deliveries.recordOutcomes([late]), [false]);
        assert.deepEqual((await snapshot(stores, lost)).slice(0, 2), [delivery, exporter]);
        assert.deepEqual(await stores.deliveries.attempts(lost.deliveryId), [
            { number: 1, startedAt: at(0), finishedAt: at(70_000), outcome: sampleOutcome('connect_refused'), late: true },
        ]);
    },

    async 'leaves the present claim alone when the outcome of an earlier one comes late'(stores) {
        const lost = await claimOne(stores);
        await sweepAll(stores);
        const held = only(await claim(stores, await dispatchedIds(stores, { now: at(60_001) }), at(60_001)));
        assert.deepEqual(await stores.deliveries.recordOutcomes([success(lost), success(held)]), [false, true]);
        const attempts = await stores.deliveries.attempts(lost.deliveryId);
        assert.deepEqual(
            attempts.map(({ number, late, outcome }) => [number, late, outcome?.code]),
            [
                [1, true, 'delivered'],
                [2, false, 'delivered'],
            ],
        );
    },

    async 'records the outcome of a claim once'(stores) {
        const held = await claimOne(stores);
        assert.deepEqual(await stores.deliveries.recordOutcomes([success(held), failure(held, at(9))]), [true, false]);
        const before = await snapshot(stores, held);
        assert.deepEqual(await stores.deliveries.recordOutcomes([failure(held, at(9))]), [false]);
        assert.deepEqual(await snapshot(stores, held), before);
        assert.deepEqual([before[2][0]?.outcome?.code, before[2][0]?.late], ['delivered', false]);
    },

    async 'records the outcome of a claim that has run out and was not taken away'(stores) {
        const held = await claimOne(stores);
        assert.deepEqual(await stores.deliveries.recordOutcomes([success(held, { finishedAt: at(120_000) })]), [true]);
        assert.equal(only(await stores.deliveries.attempts(held.deliveryId)).late, false);
    },

    async 'lets one of many outcomes at once win'(stores) {
        const claims = await claimMany(stores, 6);
        const outcomes = [...claims, ...[...claims].reverse()].map((one) => failure(one, at(9)));
        const answers = await inParallel(20, (index) =>
            stores.deliveries.recordOutcomes(index % 2 === 0 ? outcomes.slice(0, 6) : outcomes.slice(6)),
        );
        assert.equal(answers.flat().filter(Boolean).length, 6);
        assert.equal((await exporterOf(stores, nth(claims, 0)))?.consecutiveFailures, 6);
    },

    async 'counts the failures of an exporter'(stores) {
        const claims = await claimMany(stores, 5);
        await stores.deliveries.recordOutcomes(claims.slice(0, 3).map((one) => failure(one, at(9))));
        assert.equal((await exporterOf(stores, nth(claims, 0)))?.consecutiveFailures, 3);
        await stores.deliveries.recordOutcomes(claims.slice(3).map((one) => failure(one, at(9))));
        assert.equal((await exporterOf(stores, nth(claims, 0)))?.consecutiveFailures, 5);
    },

    async 'counts failures in the order given, since the last success'(stores) {
        const claims = await claimMany(stores, 9);
        const outcomes = claims.map((one, index) => ([2, 5].includes(index) ? success(one) : failure(one, at(9))));
        await stores.deliveries.recordOutcomes(outcomes.slice(0, 4));
        assert.equal((await exporterOf(stores, nth(claims, 0)))?.consecutiveFailures, 1);
        await stores.deliveries.recordOutcomes(outcomes.slice(4));
        assert.equal((await exporterOf(stores, nth(claims, 0)))?.consecutiveFailures, 3);
    },

    async 'forgets the failures after a success'(stores) {
        const claims = await claimMany(stores, 3);
        await stores.deliveries.recordOutcomes(claims.slice(0, 2).map((one) => failure(one, at(9))));
        await stores.deliveries.recordOutcomes([success(nth(claims, 2))]);
        assert.equal((await exporterOf(stores, nth(claims, 0)))?.consecutiveFailures, 0);
    },

    async 'counts the failures of each exporter apart'(stores) {
        const first = await addExporter(stores);
        const second = await addExporter(stores, { createdAt: at(1) });
        await publish(stores, {}, {});
        const claims = await claim(stores, await dispatchedIds(stores));
        const outcomes = claims.map((one) => (one.exporter.id === first.id ? failure(one, at(9)) : success(one)));
        await stores.deliveries.recordOutcomes(outcomes);
        const failures = (await stores.exporters.list()).map(({ id, consecutiveFailures }) => [id, consecutiveFailures]);
        assert.deepEqual(failures, [
            [first.id, 2],
            [second.id, 0],
        ]);
    },

    async 'counts no failure that says nothing about health'(stores) {
        const exporter = await addExporter(stores);
        await publishTest(stores, exporter.id);
        const test = only(await claim(stores, await dispatchedIds(stores)));
        await stores.deliveries.recordOutcomes([failure(test, at(9), { next: { state: 'exhausted' }, health: 'none', probeAt: at(9) })]);
        assert.deepEqual(await stores.exporters.get(exporter.id), exporter);
    },

    async 'stops an exporter for a reason'(stores) {
        const held = await claimOne(stores);
        const stopReason = 'receiver answered 410 Gone';
        await stores.deliveries.recordOutcomes([failure(held, at(9), { stopReason })]);
        assert.deepEqual(await exporterOf(stores, held), {
            ...held.exporter,
            state: 'stopped',
            stopReason,
            consecutiveFailures: 1,
            updatedAt: at(50),
        });
        assert.deepEqual(await dispatchedIds(stores, { now: at(9) }), []);
    },

    async 'keeps the reason of an exporter that is stopped already'(stores) {
        const [first, second] = await claimMany(stores, 2);
        assert.ok(first !== undefined && second !== undefined);
        await stores.exporters.update(first.exporter.id, { state: 'stopped', stopReason: null }, at(20));
        await stores.deliveries.recordOutcomes([failure(first, at(9), { stopReason: 'late' })]);
        const exporter = await exporterOf(stores, first);
        assert.deepEqual([exporter?.stopReason, exporter?.updatedAt], [null, at(20)]);
    },

    async 'records outcomes and removes at once without getting stuck'(stores) {
        for (let round = 0; round < 5; round++) {
            const claims = await claimMany(stores, 8);
            const { id } = nth(claims, 0).exporter;
            const outcomes = claims.map((one) => failure(one, at(9)));
            const recording = outcomes.flatMap((_, index) => [outcomes.slice(index), outcomes.slice(0, index + 1).reverse()]);
            const removing = stores.exporters.remove(id, at(60));
            const answers = await Promise.all(recording.map((some) => stores.deliveries.recordOutcomes(some)));
            assert.equal(await removing, true);
            assert.ok(answers.flat().filter(Boolean).length <= 8);
            const states = (await stores.deliveries.list({ exporterId: id, limit: 99 })).map(({ state }) => state);
            assert.deepEqual(states, Array(8).fill('cancelled'));
        }
    },
};

/** So many deliveries of one new exporter, all being sent. */
async function claimMany(stores: WebhookStores, count: number): Promise<readonly Claim[]> {
    await addExporter(stores);
    await publish(stores, ...Array(count).fill({}));
    const claims = await claim(stores, await dispatchedIds(stores));
    assert.equal(claims.length, count);
    return claims;
}

async function exporterOf({ exporters }: WebhookStores, { exporter }: Claim) {
    return await exporters.get(exporter.id);
}

async function snapshot(stores: WebhookStores, { deliveryId, exporter }: Claim) {
    return [
        await stores.deliveries.get(deliveryId),
        await stores.exporters.get(exporter.id),
        await stores.deliveries.attempts(deliveryId),
    ] as const;
}

/** Takes the claims away that were made at the start. */
async function sweepAll({ deliveries }: WebhookStores): Promise<void> {
    await deliveries.sweep({ now: at(60_000), queuedBefore: at(0), limit: 100 });
}
