import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { HandedOut, RecordedOutcome, SweepOptions } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { type BegunAttempt, RESERVATION_TIMES } from '../../../lib/webhooks/dispatching/reservations.ts';
import { FAULTS, faultDelay } from '../../../lib/webhooks/outcomes/breaker.ts';
import { assertFields, inParallel, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, BEGIN_WITHIN, failure, type Holder, holderOf, sampleOutcome, success, type WebhookBench } from './fixture.ts';

/** From then on, in milliseconds, what was handed out at the beginning and was not heard of cannot have begun any more. */
const UNBEGUN = BEGIN_WITHIN + RESERVATION_TIMES.reportedAfter + 1;

/** Attempts that begin under claims that were handed out: how they end, how a session makes them its own, and what has not begun. */
export const begunLaws: Laws<WebhookBench> = {
    async 'records the outcome of what began under a claim that was handed out'(bench) {
        await bench.addExporter();
        const first = await bench.handOutOne();
        const second = await bench.handOutOne();
        assert.deepEqual(await bench.record([success(first), success(second)], at(40)), [false, false], 'began when?');
        const [inTime, tooLate] = [success(first, { begunAt: at(7) }), success(second, { begunAt: at(99) })];
        assert.deepEqual(await bench.record([inTime, tooLate], at(40)), [true, true]);
        for (const [{ deliveryId, outcome }, startedAt] of [
            [inTime, at(7)],
            [tooLate, at(40)],
        ] as const) {
            await bench.assertDelivery(deliveryId, { state: 'delivered', attempts: 1, finishedAt: at(40), lastCode: 'delivered' });
            const expected = { number: 1, startedAt, finishedAt: at(40), outcome, late: false };
            assert.deepEqual(await bench.deliveries.attempts(deliveryId), [expected], 'not later than the time of the store');
        }
    },

    async 'uses up a try for a failure under it, and none for a fault of ours'(bench) {
        const { id } = await bench.addExporter();
        const failed = await bench.handOutOne();
        const faulty = await bench.handOutOne();
        const fault = { outcome: sampleOutcome('interrupted'), next: { state: 'pending', delay: 'fault' }, health: 'none' } as const;
        const outcomes = [failure(failed, 5000, { begunAt: at(1) }), success(faulty, { begunAt: at(1), ...fault })];
        assert.deepEqual(await bench.record(outcomes), [true, true]);
        await bench.assertDelivery(failed.deliveryId, { state: 'pending', attempts: 1, dueAt: at(5050) });
        await bench.assertDelivery(faulty.deliveryId, { state: 'pending', attempts: 1, dueAt: at(50 + faultDelay(1)) });
        assertFields(await bench.exporters.get(id), { consecutiveFailures: 1 });
        const again = await bench.dispatch({ now: at(6000), beginWithin: BEGIN_WITHIN });
        const tries = again.map(({ deliveryId, attempt, reservation }) => [deliveryId, attempt, reservation?.attemptSinceReplay]);
        assert.deepEqual(new Set(tries.map(String)), new Set([`${failed.deliveryId},2,2`, `${faulty.deliveryId},2,1`]));
    },

    async 'records the outcome of one attempt under it, however often it is asked to'(bench) {
        await bench.addExporter();
        const holder = await bench.handOutOne();
        const outcome = failure(holder, 5000, { begunAt: at(1) });
        assert.deepEqual(await bench.record([outcome, outcome]), [true, false]);
        assert.deepEqual(await bench.record([outcome]), [false]);
        assert.deepEqual(await bench.record([success(holder, { begunAt: at(1) })]), [false]);
        await bench.assertDelivery(holder.deliveryId, { state: 'pending', attempts: 1, dueAt: at(5050) });
        assert.equal(only(await bench.deliveries.attempts(holder.deliveryId)).number, 1);
    },

    async 'lets one of many win that end the same attempt at once'(bench) {
        await bench.addExporter();
        const held = [await bench.handOutOne(), await bench.handOutOne()] as const;
        const outcomes = held.map((holder) => success(holder, { begunAt: at(1) }));
        const won = await inParallel(20, (index) => bench.record(index % 2 === 0 ? outcomes : outcomes.toReversed()));
        assert.equal(won.flat().filter((one) => one).length, 2);
        for (const { deliveryId } of held) {
            assert.equal(only(await bench.deliveries.attempts(deliveryId)).number, 1);
        }
    },

    async 'makes what a session has begun its own'(bench) {
        await bench.addExporter();
        const held = [await bench.handOutOne(), await bench.handOutOne(), await bench.handOutOne()] as const;
        const [ended, kept, finished] = held;
        const [one, another] = [randomUUID(), randomUUID()];
        await nameAt(bench, at(600), one, [begun(ended)]);
        await nameAt(bench, at(600), another, [begun(kept), begun(finished, 900)]);
        for (const { deliveryId } of held) {
            await bench.assertDelivery(deliveryId, { state: 'sending', attempts: 1, finishedAt: null });
        }
        const open = { number: 1, finishedAt: null, outcome: null, late: false };
        assert.deepEqual(await bench.deliveries.attempts(kept.deliveryId), [{ ...open, startedAt: at(1) }]);
        assert.deepEqual(await bench.deliveries.attempts(finished.deliveryId), [{ ...open, startedAt: at(600) }], 'not later');

        assert.deepEqual(await bench.record([success(finished, { begunAt: at(900) })], at(700)), [true]);
        assertFields(only(await bench.deliveries.attempts(finished.deliveryId)), { number: 1, startedAt: at(600) });
        await bench.deliveries.endSessions([one]);
        await sweep(bench, at(800));
        await bench.assertDelivery(ended.deliveryId, { state: 'pending', lastCode: 'interrupted', attempts: 1 });
        await sweep(bench, at(60_000));
        await bench.assertDelivery(kept.deliveryId, { state: 'sending' });
        await sweep(bench, at(60_001));
        await bench.assertDelivery(kept.deliveryId, { state: 'pending', lastCode: 'interrupted', dueAt: at(61_001) });
    },

    async 'makes nothing of a session whose claim holds no more'(bench) {
        await bench.addExporter();
        const held = [await bench.handOutOne(), await bench.handOutOne(), await bench.handOutOne(), await bench.handOutOne()] as const;
        const [other, finished, claimed, unbegun] = held;
        await bench.record([success(finished, { begunAt: at(1) })]);
        const claim = await bench.claimHeld(claimed);
        await takeBack(bench);
        const session = randomUUID();
        await nameAt(bench, at(UNBEGUN), session, [begun({ ...other, token: randomUUID() }), ...held.slice(1).map((one) => begun(one))]);
        await bench.assertDelivery(other.deliveryId, { state: 'pending', attempts: 0 });
        await bench.assertDelivery(finished.deliveryId, { state: 'delivered', attempts: 1 });
        await bench.assertDelivery(unbegun.deliveryId, { state: 'pending', attempts: 0 });
        await bench.deliveries.endSessions([session]);
        await sweep(bench, at(UNBEGUN + 1));
        assert.deepEqual(await bench.record([success(claim)], at(UNBEGUN + 2)), [true], 'it is who claimed it that holds it');
    },

    async 'answers a heartbeat with its time'(bench) {
        for (const time of [at(0), at(12_345)]) {
            assert.deepEqual(await nameAt(bench, time, randomUUID(), []), time);
        }
    },

    async 'takes back what nobody has begun once it cannot begin any more'(bench) {
        const { id } = await bench.addExporter();
        const { deliveryId } = await bench.handOutOne();
        assert.deepEqual(await sweep(bench, at(UNBEGUN - 1)), []);
        await bench.assertDelivery(deliveryId, { state: 'queued' });
        assert.deepEqual(await sweep(bench, at(UNBEGUN)), []);
        await bench.assertDelivery(deliveryId, { state: 'pending', attempts: 0, dueAt: at(0), lastCode: null, finishedAt: null });
        assert.deepEqual(await bench.deliveries.attempts(deliveryId), []);
        assert.equal((await bench.exporters.health(id))?.inFlight, 0, 'its place is free');
        assertFields(await bench.exporters.get(id), { consecutiveFailures: 0 });
    },

    async 'takes nothing back before every session that is alive has spoken'(bench) {
        await bench.addExporter();
        const { deliveryId } = await bench.handOutOne();
        const [spoken, silent] = [randomUUID(), randomUUID()];
        await nameAt(bench, at(0), silent, [], at(0));
        await nameAt(bench, at(UNBEGUN), spoken, [], at(UNBEGUN));
        await sweep(bench, at(UNBEGUN));
        await bench.assertDelivery(deliveryId, { state: 'queued' });
        await nameAt(bench, at(5000), silent, [], at(UNBEGUN - 1));
        await sweep(bench, at(5000));
        await bench.assertDelivery(deliveryId, { state: 'queued' });
        await nameAt(bench, at(5000), silent, [], at(UNBEGUN));
        await sweep(bench, at(5000));
        await bench.assertDelivery(deliveryId, { state: 'pending' });
    },

    async 'waits for no session that is gone, and for a silent one when asked to'(bench) {
        await bench.addExporter();
        const first = await bench.handOutOne();
        const second = await bench.handOutOne();
        const silent = randomUUID();
        await nameAt(bench, at(0), silent, [], at(0), 2000);
        await sweep(bench, at(1999));
        await bench.assertDelivery(first.deliveryId, { state: 'queued' });
        await sweep(bench, at(5000), { endedOnly: true });
        await bench.assertDelivery(first.deliveryId, { state: 'queued' });
        await sweep(bench, at(5000), { limit: 1 });
        assert.deepEqual((await bench.listed({ state: 'queued' })).length, 1, 'no more than the limit');
        await bench.deliveries.endSessions([silent]);
        await sweep(bench, at(5000), { endedOnly: true });
        await bench.assertDelivery(second.deliveryId, { state: 'pending' });
    },

    async 'hands out without a claim what was taken back, until it has been claimed'(bench) {
        const { id } = await bench.addExporter();
        const { deliveryId } = await bench.handOutOne();
        await takeBack(bench);
        const dispatched = async (now: Date) => only(await bench.dispatch({ now, beginWithin: BEGIN_WITHIN }));
        assert.deepEqual(await dispatched(at(2000)), {
            deliveryId,
            exporterId: id,
            collector: 'default',
            attempt: 1,
            singleAttempt: false,
            reservation: null,
        });
        await sweep(bench, at(9000));
        await bench.assertDelivery(deliveryId, { state: 'queued' });
        await bench.update(id, { state: 'stopped' }, at(9000));
        assert.deepEqual(await bench.claim([deliveryId], at(9000)), [], 'goes back');
        await bench.update(id, { state: 'running' }, at(9001));
        assert.equal((await dispatched(at(9001))).reservation, null, 'has not been claimed');
        const claim = only(await bench.claim([deliveryId], at(9002)));
        assertFields(claim, { attempt: 1, attemptSinceReplay: 1 });
        await bench.record([failure(claim, 0)], at(9003));
        assert.equal((await dispatched(at(9004))).reservation?.attemptSinceReplay, 2);
    },

    async 'counts nothing for a claim that was handed out and not begun'(bench) {
        await bench.addExporter();
        const { deliveryId } = await bench.handOutOne();
        await takeBack(bench);
        for (let hour = 1; hour <= FAULTS.poisonedAfter; hour++) {
            const [dispatched] = await bench.dispatch({ now: at(hour * 3_600_000), beginWithin: BEGIN_WITHIN });
            assert.equal(dispatched?.reservation, null, 'a delivery whose claims run out is claimed');
            only(await bench.claim([deliveryId], at(hour * 3_600_000)));
            await bench.assertDelivery(deliveryId, { attempts: hour });
            await sweep(bench, at(hour * 3_600_000 + 60_000));
            await bench.assertDelivery(deliveryId, { state: hour < FAULTS.poisonedAfter ? 'pending' : 'poisoned' });
        }
    },

    async 'ends a delivery that was taken back with a success, however late'(bench) {
        await bench.addExporter();
        const held = [await bench.handOutOne(), await bench.handOutOne()] as const;
        await takeBack(bench);
        const [waiting, queued] = held;
        await bench.dispatch({ now: at(2000), limit: 1 });
        const late = held.map((holder) => success(holder, { begunAt: at(900) }));
        assert.deepEqual(await bench.record(late, at(2500)), [false, false]);
        for (const { deliveryId } of [waiting, queued]) {
            await bench.assertDelivery(deliveryId, { state: 'delivered', attempts: 1, lastCode: 'delivered', finishedAt: at(2500) });
            const attempt = { number: 1, startedAt: at(900), finishedAt: at(2500), outcome: sampleOutcome('delivered'), late: true };
            assert.deepEqual(await bench.deliveries.attempts(deliveryId), [attempt]);
        }
        assert.deepEqual(await bench.record(late, at(2600)), [false, false], 'once');
        assert.equal((await bench.deliveries.attempts(queued.deliveryId)).length, 1);
        assert.deepEqual(await bench.dispatch({ now: at(3000) }), []);
    },

    async 'ends with a late success the attempt that is being made meanwhile'(bench) {
        await bench.addExporter();
        const holder = await bench.handOutOne();
        const { deliveryId } = holder;
        await takeBack(bench);
        const claim = only(await bench.claimDue({ now: at(2000) }));
        assert.deepEqual(await bench.record([success(holder, { begunAt: at(900) })], at(2500)), [false]);
        await bench.assertDelivery(deliveryId, { state: 'delivered', attempts: 2, finishedAt: at(2500) });
        assert.deepEqual(await endsOf(bench, deliveryId), ['1 interrupted', '2 delivered late']);
        assert.deepEqual(await bench.record([failure(claim, 0)], at(2600)), [false], 'its claim is gone');
        await bench.assertDelivery(deliveryId, { state: 'delivered', attempts: 2, finishedAt: at(2500) });
        assert.deepEqual(await endsOf(bench, deliveryId), ['1 connect_refused late', '2 delivered late']);
    },

    async 'only notes a failure of what was taken back, and none while another attempt is made'(bench) {
        const { id } = await bench.addExporter();
        const held = [await bench.handOutOne(), await bench.handOutOne()] as const;
        await takeBack(bench);
        const [noted, made] = held;
        const late = (holder: Holder): RecordedOutcome => failure(holder, 9000, { begunAt: at(900) });
        assert.deepEqual(await bench.record([late(noted)], at(2000)), [false]);
        await bench.assertDelivery(noted.deliveryId, { state: 'pending', attempts: 1, dueAt: at(0), lastCode: null });
        assert.deepEqual(await endsOf(bench, noted.deliveryId), ['1 connect_refused late']);
        assertFields(await bench.exporters.get(id), { consecutiveFailures: 0 });

        const claims = await bench.claimDue({ now: at(2100) });
        assertFields(
            claims.find(({ deliveryId }) => deliveryId === noted.deliveryId),
            { attempt: 2, attemptSinceReplay: 1 },
        );
        assert.deepEqual(await bench.record([late(made)], at(2200)), [false]);
        await bench.assertDelivery(made.deliveryId, { state: 'sending', attempts: 1 });
        assert.deepEqual(await endsOf(bench, made.deliveryId), ['1 open']);
        assert.deepEqual(
            await bench.record(
                claims.map((claim) => success(claim)),
                at(2300),
            ),
            [true, true],
        );
    },

    async 'hears late of several attempts of a delivery, each with a number of its own'(bench) {
        await bench.addExporter();
        const holders = [await bench.handOutOne()];
        const { deliveryId } = present(holders[0]);
        await takeBack(bench);
        const claim = only(await bench.claimDue({ now: at(2000) }));
        await bench.record([failure(claim, 0)], at(2001));
        holders.push(holderOf(only(await bench.dispatch({ now: at(2002), beginWithin: BEGIN_WITHIN }))));
        await sweep(bench, at(2002 + UNBEGUN));
        const late = holders.map((holder) => failure(holder, 0, { begunAt: at(900) }));
        assert.deepEqual(await bench.record([...late, ...late], at(9000)), [false, false, false, false]);
        await bench.assertDelivery(deliveryId, { state: 'pending', attempts: 3 });
        const ends = ['1 connect_refused', '2 connect_refused late', '3 connect_refused late'];
        assert.deepEqual(await endsOf(bench, deliveryId), ends);
        assert.equal(only(await bench.claimDue({ now: at(9000) })).attempt, 4);
    },
};

function begun({ deliveryId, token }: Holder, claimedAt: number = 1): BegunAttempt {
    return { deliveryId, token, claimedAt: at(claimedAt), duration: 60_000 };
}

/** A session says what it has begun. */
async function nameAt(
    bench: WebhookBench,
    now: Date,
    id: string,
    attempts: readonly BegunAttempt[],
    upTo: Date | null = null,
    duration: number = 1_000_000,
): Promise<Date> {
    await bench.setTime(now);
    return await bench.deliveries.keepAlive({ id, process: 'a process', slots: {} }, duration, { upTo, attempts });
}

async function sweep(bench: WebhookBench, now: Date, overrides: Partial<SweepOptions> = {}): Promise<readonly HandedOut[]> {
    await bench.setTime(now);
    return (await bench.deliveries.sweep({ requeueAfter: 1_000_000, limit: 100, ...overrides })).lost;
}

/** All that was handed out at the beginning and has not begun is waiting again. */
async function takeBack(bench: WebhookBench): Promise<void> {
    await sweep(bench, at(UNBEGUN));
    assert.deepEqual(await bench.listed({ state: 'queued' }), []);
}

/** Number and outcome of each attempt of a delivery. */
async function endsOf({ deliveries }: WebhookBench, deliveryId: string): Promise<readonly string[]> {
    const attempts = await deliveries.attempts(deliveryId);
    return attempts.map(({ number, outcome, late }) => `${number} ${outcome?.code ?? 'open'}${late ? ' late' : ''}`);
}
