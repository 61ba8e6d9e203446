import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Claim } from '../../lib/webhooks/store.ts';
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
    settlement,
} from './webhook-samples.ts';
import type { Laws, WebhookStores } from './webhook-stores.ts';

export const settlementLaws: Laws = {
    'records what was delivered': async (stores) => {
        const held = await claimOne(stores);
        assert.deepEqual(await stores.deliveries.settle([settlement(held)]), [true]);
        const delivery = await stores.deliveries.get(held.deliveryId);
        assert.deepEqual(
            [delivery?.state, delivery?.finishedAt, delivery?.lastCode, delivery?.attempts],
            ['delivered', at(50), 'delivered', 1],
        );
        assert.deepEqual(await stores.deliveries.attempts(held.deliveryId), [
            { number: 1, startedAt: at(0), finishedAt: at(50), outcome: sampleOutcome('delivered'), late: false },
        ]);
    },

    'plans the next try': async (stores) => {
        const held = await claimOne(stores);
        await stores.deliveries.settle([failure(held, at(5000))]);
        const delivery = await stores.deliveries.get(held.deliveryId);
        assert.deepEqual([delivery?.state, delivery?.dueAt, delivery?.finishedAt], ['pending', at(5000), null]);
        assert.equal(delivery?.lastCode, 'connect_refused');
        assert.deepEqual(await dispatchedIds(stores, { now: at(4999) }), []);
        assert.deepEqual(await dispatchedIds(stores, { now: at(5000) }), [held.deliveryId]);
    },

    'records what is exhausted': async (stores) => {
        const held = await claimOne(stores);
        await stores.deliveries.settle([failure(held, at(0), { next: { state: 'exhausted' } })]);
        const delivery = await stores.deliveries.get(held.deliveryId);
        assert.deepEqual([delivery?.state, delivery?.finishedAt, delivery?.lastCode], ['exhausted', at(50), 'connect_refused']);
        assert.deepEqual(await dispatchedIds(stores, { now: at(9999) }), []);
    },

    'keeps an outcome exactly': async (stores) => {
        const outcome = sampleOutcome('server_error', {
            status: 503,
            detail: 'control \u0000\u001b, lone \ud83d, pair 🦉, quotes "\\\'',
            retryAfter: 86_400_000,
            timings: { dns: 0, connect: null, tls: 12, firstByte: 345, total: 15_000 },
            address: '2001:db8::1',
            fingerprint: 'AA:BB',
        });
        const held = await claimOne(stores);
        assert.deepEqual(await stores.deliveries.settle([failure(held, at(9), { outcome })]), [true]);
        assert.deepEqual(only(await stores.deliveries.attempts(held.deliveryId)).outcome, outcome);
    },

    'answers settlements in the order given': async (stores) => {
        const claims = await claimMany(stores, 4);
        const [first, second, third, fourth] = claims.map((one) => settlement(one)).reverse();
        assert.ok(first !== undefined && second !== undefined && third !== undefined && fourth !== undefined);
        const told = [first, { ...second, token: 'foreign' }, third, { ...fourth, deliveryId: 'no-uuid' }];
        assert.deepEqual(await stores.deliveries.settle(told), [true, false, true, false]);
        assert.deepEqual(
            (await stores.deliveries.list({ state: 'delivered', limit: 9 })).map(({ id }) => id).sort(),
            [first, third].map(({ deliveryId }) => deliveryId).sort(),
        );
    },

    'changes nothing for a token that never held the claim': async (stores) => {
        const held = await claimOne(stores);
        const before = await snapshot(stores, held);
        const foreign = failure(held, at(9), { token: randomUUID(), stopReason: 'not to be' });
        assert.deepEqual(await stores.deliveries.settle([foreign]), [false]);
        assert.deepEqual(await snapshot(stores, held), before);
        assert.deepEqual(await stores.deliveries.settle([settlement(held)]), [true]);
    },

    'completes only the attempt when the claim was lost': async (stores) => {
        const lost = await claimOne(stores);
        await sweepAll(stores);
        const [delivery, exporter] = await snapshot(stores, lost);

        const late = failure(lost, at(1), { finishedAt: at(70_000), probeAt: at(99_000), stopReason: 'not to be' });
        assert.deepEqual(await stores.deliveries.settle([late]), [false]);
        assert.deepEqual((await snapshot(stores, lost)).slice(0, 2), [delivery, exporter]);
        assert.deepEqual(await stores.deliveries.attempts(lost.deliveryId), [
            { number: 1, startedAt: at(0), finishedAt: at(70_000), outcome: sampleOutcome('connect_refused'), late: true },
        ]);
    },

    'leaves the present claim alone when an earlier one is settled late': async (stores) => {
        const lost = await claimOne(stores);
        await sweepAll(stores);
        const held = only(await claim(stores, await dispatchedIds(stores, { now: at(60_001) }), at(60_001)));
        assert.deepEqual(await stores.deliveries.settle([settlement(lost), settlement(held)]), [false, true]);
        const attempts = await stores.deliveries.attempts(lost.deliveryId);
        assert.deepEqual(
            attempts.map(({ number, late, outcome }) => [number, late, outcome?.code]),
            [
                [1, true, 'delivered'],
                [2, false, 'delivered'],
            ],
        );
    },

    'settles a claim once': async (stores) => {
        const held = await claimOne(stores);
        assert.deepEqual(await stores.deliveries.settle([settlement(held), failure(held, at(9))]), [true, false]);
        const before = await snapshot(stores, held);
        assert.deepEqual(await stores.deliveries.settle([failure(held, at(9))]), [false]);
        assert.deepEqual(await snapshot(stores, held), before);
        assert.deepEqual([before[2][0]?.outcome?.code, before[2][0]?.late], ['delivered', false]);
    },

    'settles a claim that has run out and was not taken away': async (stores) => {
        const held = await claimOne(stores);
        assert.deepEqual(await stores.deliveries.settle([settlement(held, { finishedAt: at(120_000) })]), [true]);
        assert.equal(only(await stores.deliveries.attempts(held.deliveryId)).late, false);
    },

    'lets one of many settlements at once win': async (stores) => {
        const claims = await claimMany(stores, 6);
        const told = [...claims, ...[...claims].reverse()].map((one) => failure(one, at(9)));
        const answers = await inParallel(20, (place) => stores.deliveries.settle(place % 2 === 0 ? told.slice(0, 6) : told.slice(6)));
        assert.equal(answers.flat().filter(Boolean).length, 6);
        assert.equal((await exporterOf(stores, nth(claims, 0)))?.consecutiveFailures, 6);
    },

    'counts the failures of an exporter': async (stores) => {
        const claims = await claimMany(stores, 5);
        await stores.deliveries.settle(claims.slice(0, 3).map((one) => failure(one, at(9))));
        assert.equal((await exporterOf(stores, nth(claims, 0)))?.consecutiveFailures, 3);
        await stores.deliveries.settle(claims.slice(3).map((one) => failure(one, at(9))));
        assert.equal((await exporterOf(stores, nth(claims, 0)))?.consecutiveFailures, 5);
    },

    'counts failures in the order given, since the last success': async (stores) => {
        const claims = await claimMany(stores, 9);
        const told = claims.map((one, place) => ([2, 5].includes(place) ? settlement(one) : failure(one, at(9))));
        await stores.deliveries.settle(told.slice(0, 4));
        assert.equal((await exporterOf(stores, nth(claims, 0)))?.consecutiveFailures, 1);
        await stores.deliveries.settle(told.slice(4));
        assert.equal((await exporterOf(stores, nth(claims, 0)))?.consecutiveFailures, 3);
    },

    'forgets the failures after a success': async (stores) => {
        const claims = await claimMany(stores, 3);
        await stores.deliveries.settle(claims.slice(0, 2).map((one) => failure(one, at(9))));
        await stores.deliveries.settle([settlement(nth(claims, 2))]);
        assert.equal((await exporterOf(stores, nth(claims, 0)))?.consecutiveFailures, 0);
    },

    'counts the failures of each exporter apart': async (stores) => {
        const first = await addExporter(stores);
        const second = await addExporter(stores, { createdAt: at(1) });
        await publish(stores, {}, {});
        const claims = await claim(stores, await dispatchedIds(stores));
        const told = claims.map((one) => (one.exporter.id === first.id ? failure(one, at(9)) : settlement(one)));
        await stores.deliveries.settle(told);
        const failures = (await stores.exporters.list()).map(({ id, consecutiveFailures }) => [id, consecutiveFailures]);
        assert.deepEqual(failures, [
            [first.id, 2],
            [second.id, 0],
        ]);
    },

    'counts no failure that says nothing about health': async (stores) => {
        const exporter = await addExporter(stores);
        await publishTest(stores, exporter.id);
        const test = only(await claim(stores, await dispatchedIds(stores)));
        await stores.deliveries.settle([failure(test, at(9), { next: { state: 'exhausted' }, health: 'none', probeAt: at(9) })]);
        assert.deepEqual(await stores.exporters.get(exporter.id), exporter);
    },

    'stops an exporter for a reason': async (stores) => {
        const held = await claimOne(stores);
        const stopReason = 'receiver answered 410 Gone';
        await stores.deliveries.settle([failure(held, at(9), { stopReason })]);
        assert.deepEqual(await exporterOf(stores, held), {
            ...held.exporter,
            state: 'stopped',
            stopReason,
            consecutiveFailures: 1,
            updatedAt: at(50),
        });
        assert.deepEqual(await dispatchedIds(stores, { now: at(9) }), []);
    },

    'keeps the reason of an exporter that is stopped already': async (stores) => {
        const [first, second] = await claimMany(stores, 2);
        assert.ok(first !== undefined && second !== undefined);
        await stores.exporters.update(first.exporter.id, { state: 'stopped', stopReason: null }, at(20));
        await stores.deliveries.settle([failure(first, at(9), { stopReason: 'late' })]);
        const exporter = await exporterOf(stores, first);
        assert.deepEqual([exporter?.stopReason, exporter?.updatedAt], [null, at(20)]);
    },

    'settles and removes at once without getting stuck': async (stores) => {
        for (let round = 0; round < 5; round++) {
            const claims = await claimMany(stores, 8);
            const { id } = nth(claims, 0).exporter;
            const told = claims.map((one) => failure(one, at(9)));
            const settling = told.flatMap((_, place) => [told.slice(place), told.slice(0, place + 1).reverse()]);
            const removing = stores.exporters.remove(id, at(60));
            const answers = await Promise.all(settling.map((some) => stores.deliveries.settle(some)));
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
    const swept = await deliveries.sweep({ now: at(60_000), queuedBefore: at(0), limit: 100 });
    assert.equal(swept.interrupted, 1);
}
