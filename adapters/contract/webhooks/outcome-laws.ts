import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Claim, RecordedOutcome } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { assertFields, ids, inParallel, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, sampleOutcome, success, type WebhookBench } from './fixture.ts';

/** What an outcome changes, and whose outcome counts. */
export const outcomeLaws: Laws<WebhookBench> = {
    async 'records what was delivered'(bench) {
        const held = await bench.claimOne();
        assert.deepEqual(await bench.record([success(held)]), [true]);
        const expected = { state: 'delivered', finishedAt: at(50), lastCode: 'delivered', attempts: 1 } as const;
        await bench.assertDelivery(held.deliveryId, expected);
        assert.deepEqual(await bench.deliveries.attempts(held.deliveryId), [
            { number: 1, startedAt: at(0), finishedAt: at(50), outcome: sampleOutcome('delivered'), late: false },
        ]);
    },

    async 'plans the next try'(bench) {
        const held = await bench.claimOne();
        await bench.fail([held], at(5000));
        const expected = { state: 'pending', dueAt: at(5000), finishedAt: null, lastCode: 'connect_refused' } as const;
        await bench.assertDelivery(held.deliveryId, expected);
        assert.deepEqual(await bench.dispatchedIds({ now: at(4999) }), []);
        assert.deepEqual(await bench.dispatchedIds({ now: at(5000) }), [held.deliveryId]);
    },

    async 'records what is exhausted'(bench) {
        const held = await bench.claimOne();
        await bench.fail([held], at(50), { next: { state: 'exhausted' } });
        await bench.assertDelivery(held.deliveryId, { state: 'exhausted', finishedAt: at(50), lastCode: 'connect_refused' });
        assert.deepEqual(await bench.dispatchedIds({ now: at(9999) }), []);
    },

    async 'keeps an outcome exactly'(bench) {
        const outcome = sampleOutcome('server_error', {
            status: 503,
            detail: 'control \u0000\u001b, lone \ud83d, pair 🦉, quotes "\\\'',
            retryAfter: 86_400_000,
            timings: { dns: 0, connect: null, tls: 12, firstByte: 345, total: 15_000 },
            address: '2001:db8::1',
            fingerprint: 'AA:BB',
        });
        const held = await bench.claimOne();
        assert.deepEqual(await bench.record([failure(held, 0, { outcome })]), [true]);
        assert.deepEqual(only(await bench.deliveries.attempts(held.deliveryId)).outcome, outcome);
    },

    async 'answers outcomes in the order given'(bench) {
        const wrong: Partial<RecordedOutcome>[] = [{}, { token: 'foreign' }, {}, { deliveryId: 'no-uuid' }];
        const outcomes = (await bench.claimMany(4)).toReversed().map((one, index) => success(one, wrong[index]));
        assert.deepEqual(await bench.record(outcomes), [true, false, true, false]);
        const held = outcomes.filter((_, index) => index % 2 === 0).map(({ deliveryId }) => deliveryId);
        assert.deepEqual(ids(await bench.listed({ state: 'delivered' })).sort(), held.sort());
    },

    async 'changes nothing for a token that never held the claim'(bench) {
        const held = await bench.claimOne();
        const before = await snapshot(bench, held);
        const foreign = failure(held, 0, { token: randomUUID(), stopReason: 'not to be' });
        assert.deepEqual(await bench.record([foreign]), [false]);
        assert.deepEqual(await snapshot(bench, held), before);
        assert.deepEqual(await bench.record([success(held)]), [true]);
    },

    async 'completes only the attempt when the claim was lost'(bench) {
        const lost = await bench.claimOne();
        await sweepAll(bench);
        const [delivery, exporter] = await snapshot(bench, lost);

        const late = failure(lost, 1, { stopReason: 'not to be' });
        assert.deepEqual(await bench.record([late], at(70_000)), [false]);
        assert.deepEqual((await snapshot(bench, lost)).slice(0, 2), [delivery, exporter]);
        assert.deepEqual(await bench.deliveries.attempts(lost.deliveryId), [
            { number: 1, startedAt: at(0), finishedAt: at(70_000), outcome: sampleOutcome('connect_refused'), late: true },
        ]);
    },

    async 'leaves the present claim alone when a failure of an earlier one comes late'(bench) {
        const lost = await bench.claimOne();
        await sweepAll(bench);
        const held = only(await bench.claimDue({ now: at(61_001) }));
        assert.deepEqual(await bench.record([failure(lost, 9), success(held)], at(61_002)), [false, true]);
        const attempts = await bench.deliveries.attempts(lost.deliveryId);
        assert.deepEqual(
            attempts.map(({ number, late, outcome }) => [number, late, outcome?.code]),
            [
                [1, true, 'connect_refused'],
                [2, false, 'delivered'],
            ],
        );
    },

    async 'ends a delivery that was delivered under a claim that was lost, whoever holds it by then'(bench) {
        const lost = await bench.claimMany(3);
        await sweepAll(bench);
        const [first, second, third] = lost.map(({ deliveryId }) => deliveryId);
        const [held] = await bench.claim((await bench.dispatchedIds({ now: at(61_000), limit: 2 })).slice(0, 1), at(61_001));
        assert.equal(held?.deliveryId, first);
        assert.deepEqual(
            await bench.record(
                lost.map((one) => success(one)),
                at(61_002),
            ),
            [false, false, false],
        );
        for (const id of [first, second, third]) {
            await bench.assertDelivery(String(id), { state: 'delivered', finishedAt: at(61_002), lastCode: 'delivered' });
        }

        assert.deepEqual(await bench.record([failure(present(held), 0)], at(61_003)), [false]);
        await bench.assertDelivery(String(first), { state: 'delivered' });
        const attempts = await bench.deliveries.attempts(String(first));
        assert.deepEqual(
            attempts.map(({ number, late, outcome }) => [number, late, outcome?.code]),
            [
                [1, true, 'delivered'],
                [2, true, 'connect_refused'],
            ],
        );
    },

    async 'ends by a 2xx that comes late what an outcome behind it ends in vain, in one call'(bench) {
        const lost = await bench.claimMany(2);
        await sweepAll(bench);
        const held = new Map((await bench.claimDue({ now: at(61_001) })).map((one) => [one.deliveryId, one]));
        const [first, second] = lost.map((one) => {
            const inVain = failure(present(held.get(one.deliveryId)), 0, { next: { state: 'exhausted' } });
            return { id: one.deliveryId, taken: success(one), inVain };
        });
        const outcomes = [present(first).taken, present(first).inVain, present(second).inVain, present(second).taken];
        await bench.record(outcomes, at(61_002));
        await bench.assertDelivery(present(first).id, { state: 'delivered', finishedAt: at(61_002), lastCode: 'delivered' });
        await bench.assertDelivery(present(second).id, { state: 'exhausted', lastCode: 'connect_refused' });
    },

    async 'tries again by a back-off of its own what failed on this side'(bench) {
        const first = await bench.claimOne();
        await bench.record([failure(first, 0, { next: { state: 'pending', delay: 'fault' }, health: 'none' })], at(50));
        await bench.assertDelivery(first.deliveryId, { state: 'pending', dueAt: at(1050) });
        const second = only(await bench.claimDue({ now: at(1050) }));
        assert.equal(second.attemptSinceReplay, 1, 'no try is used up');
        await bench.record([failure(second, 0, { next: { state: 'pending', delay: 'fault' }, health: 'none' })], at(1100));
        await bench.assertDelivery(first.deliveryId, { dueAt: at(3100) });
        const third = only(await bench.claimDue({ now: at(3100) }));
        await bench.record([failure(third, 7)], at(3200));
        await bench.assertDelivery(first.deliveryId, { dueAt: at(3207) });
        const fourth = only(await bench.claimDue({ now: at(3207) }));
        assert.equal(fourth.attemptSinceReplay, 2, 'a failure of the receiver is one');
        await bench.record([failure(fourth, 0, { next: { state: 'pending', delay: 'fault' }, health: 'none' })], at(3300));
        await bench.assertDelivery(first.deliveryId, { dueAt: at(4300) });
    },

    async 'stops an exporter that has failed for too long'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish({}, {}, {});
        await bench.failInTurn(1, 0);
        await bench.failInTurn(1, 999_990);
        assertFields(await bench.exporters.get(id), { state: 'running' });
        await bench.failInTurn(1, 1_000_100);
        assertFields(await bench.exporters.get(id), { state: 'stopped', updatedAt: at(1_000_105) });
        assert.match((await bench.exporters.get(id))?.stopReason ?? '', /too long/);
    },

    async 'records the outcome of a claim once'(bench) {
        const held = await bench.claimOne();
        assert.deepEqual(await bench.record([success(held), failure(held, 0)]), [true, false]);
        const before = await snapshot(bench, held);
        assert.deepEqual(await bench.record([failure(held, 0)]), [false]);
        assert.deepEqual(await snapshot(bench, held), before);
        assert.deepEqual([before[2][0]?.outcome?.code, before[2][0]?.late], ['delivered', false]);
    },

    async 'records the outcome of a claim that has run out and was not taken away'(bench) {
        const held = await bench.claimOne();
        assert.deepEqual(await bench.record([success(held)], at(120_000)), [true]);
        assert.equal(only(await bench.deliveries.attempts(held.deliveryId)).late, false);
    },

    async 'lets one of many outcomes at once win'(bench) {
        const claims = await bench.claimMany(6);
        const outcomes = [...claims, ...[...claims].reverse()].map((one) => failure(one, 0));
        const answers = await inParallel(20, (index) => bench.record(index % 2 === 0 ? outcomes.slice(0, 6) : outcomes.slice(6)));
        assert.equal(answers.flat().filter(Boolean).length, 6);
        assert.equal(await failuresOf(bench, claims), 1);
    },

    async 'counts the failures of an exporter'(bench) {
        const claims = await bench.claimMany(1);
        await bench.fail(claims, at(50));
        assert.equal(await failuresOf(bench, claims), 1);
        await bench.failInTurn(2, 100);
        assert.equal(await failuresOf(bench, claims), 3);
    },

    async 'counts in the order given, since the last success'(bench) {
        const claims = await bench.claimMany(4);
        await bench.record([failure(present(claims[0]), 9000), success(present(claims[1]))], at(50));
        assert.equal(await failuresOf(bench, claims), 0);
        await bench.publishAt(at(60), {}, {});
        const [third, fourth] = await bench.claimDue({ now: at(60) });
        await bench.record([success(present(third)), failure(present(fourth), 9000)], at(70));
        assert.equal(await failuresOf(bench, claims), 1);
    },

    async 'forgets the failures after a success'(bench) {
        const claims = await bench.claimMany(3);
        await bench.fail(claims.slice(0, 2), at(9));
        await bench.record([success(present(claims[2]))]);
        assert.equal(await failuresOf(bench, claims), 0);
    },

    async 'counts the failures of each exporter apart'(bench) {
        const first = await bench.addExporter();
        const second = await bench.addExporter({ createdAt: at(1) });
        await bench.publish({}, {});
        const claims = await bench.claimDue();
        const outcomes = claims.map((one) => (one.exporter.id === first.id ? failure(one, 0) : success(one)));
        await bench.record(outcomes);
        assertFields(await bench.exporters.get(first.id), { consecutiveFailures: 1 });
        assertFields(await bench.exporters.get(second.id), { consecutiveFailures: 0 });
    },

    async 'counts no failure that says nothing about health'(bench) {
        const exporter = await bench.addExporter();
        await bench.publishTest(exporter.id);
        await bench.fail(await bench.claimDue(), at(9), { next: { state: 'exhausted' }, health: 'none' });
        assert.equal(only(await bench.listed()).state, 'exhausted');
        assert.deepEqual(await bench.exporters.get(exporter.id), exporter);
    },

    async 'stops an exporter for a reason'(bench) {
        const held = await bench.claimOne();
        const stopReason = 'receiver answered 410 Gone';
        await bench.fail([held], at(50), { stopReason });
        const stopped = { ...held.exporter, state: 'stopped', stopReason, consecutiveFailures: 1, updatedAt: at(50) };
        assert.deepEqual(await bench.exporters.get(held.exporter.id), stopped);
        assert.deepEqual(await bench.dispatchedIds({ now: at(9) }), []);
    },

    async 'keeps the reason of an exporter that is stopped already'(bench) {
        const held = await bench.claimOne();
        const { id } = held.exporter;
        await bench.update(id, { state: 'stopped', stopReason: null }, at(20));
        await bench.fail([held], at(9), { stopReason: 'late' });
        assertFields(await bench.exporters.get(id), { stopReason: null, updatedAt: at(20) });
    },

    async 'records outcomes and removes at once without getting stuck'(bench) {
        for (let round = 0; round < 5; round++) {
            const claims = await bench.claimMany(8);
            const { id } = present(claims[0]).exporter;
            const outcomes = claims.map((one) => failure(one, 0));
            const recording = outcomes.flatMap((_, index) => [outcomes.slice(index), outcomes.slice(0, index + 1).reverse()]);
            const removing = bench.remove(id, at(60));
            const answers = await Promise.all(recording.map((some) => bench.record(some)));
            assert.equal(await removing, true);
            assert.ok(answers.flat().filter(Boolean).length <= 8);
            const states = (await bench.listed({ exporterId: id })).map(({ state }) => state);
            assert.deepEqual(states, Array(8).fill('cancelled'));
        }
    },

    async 'records late outcomes of the same attempts at once without getting stuck'(bench) {
        for (let round = 0; round < 10; round++) {
            const claims = await bench.claimMany(10);
            await sweepAll(bench);
            const late = claims.map((one) => success(one));
            const answers = await inParallel(8, (index) => bench.record(index % 2 === 0 ? late : late.toReversed()));
            assert.deepEqual(new Set(answers.flat()), new Set([false]));
            const { id } = present(claims[0]).exporter;
            const states = (await bench.listed({ exporterId: id })).map(({ state }) => state);
            assert.deepEqual(states, Array(10).fill('delivered'));
            await bench.remove(id, at(60));
        }
    },
};

/** How often the exporter of the claims has failed without a success since. */
async function failuresOf({ exporters }: WebhookBench, [claim]: readonly Claim[]): Promise<number | undefined> {
    return (await exporters.get(present(claim).exporter.id))?.consecutiveFailures;
}

async function snapshot(bench: WebhookBench, { deliveryId, exporter }: Claim) {
    return [
        await bench.deliveries.get(deliveryId),
        await bench.exporters.get(exporter.id),
        await bench.deliveries.attempts(deliveryId),
    ] as const;
}

/** Takes the claims away that were made at the start. */
async function sweepAll(bench: WebhookBench): Promise<void> {
    await bench.setTime(at(60_000));
    await bench.deliveries.sweep({ requeueAfter: 1_000_000, limit: 100 });
}
