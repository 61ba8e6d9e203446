import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Claim, ClaimRequest } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { ExporterPatch } from '../../../lib/webhooks/exporters/exporter-patch.ts';
import { assertFields, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import {
    at,
    BEGIN_WITHIN,
    failure,
    forAll,
    type Holder,
    holderOf,
    sampleEvent,
    sampleOutcome,
    success,
    type WebhookBench,
} from './fixture.ts';

/** Claims that deliveries are handed out with: who gets one, and what can be read under it. */
export const reservationLaws: Laws<WebhookBench> = {
    async 'hands out with its claim what is accepted while there is room'(bench) {
        const { id } = await bench.addExporter({ collector: 'west' });
        await bench.update(id, { url: 'https://receiver.example/other' }, at(1));
        const [accepted, second] = await bench.acceptAtOnce(2, { now: at(10) });
        const handedOut = only(accepted?.handedOut ?? []);
        const reservation = present(handedOut.reservation);
        assert.deepEqual(handedOut, {
            deliveryId: only(accepted?.deliveries ?? []),
            exporterId: id,
            collector: 'west',
            attempt: 1,
            singleAttempt: false,
            reservation: {
                token: reservation.token,
                beginBy: at(10 + BEGIN_WITHIN).getTime(),
                generation: 1,
                attemptSinceReplay: 1,
                settings: 0,
            },
        });
        assert.notEqual(second?.handedOut[0]?.reservation?.token, reservation.token);
        await bench.assertDelivery(handedOut.deliveryId, { state: 'queued', attempts: 0, dueAt: at(10), lastCode: null });
        assert.deepEqual(await bench.deliveries.attempts(handedOut.deliveryId), []);
        assert.deepEqual(await bench.dispatch({ now: at(10) }), [], 'it is in the queue');
    },

    async 'hands out no more at once than the window'(bench) {
        const exporters = [await bench.addExporter(), await bench.addExporter()];
        assert.deepEqual(counts(await bench.acceptAtOnce(3, { window: 4 })), [2, 2, 2]);
        assert.deepEqual(counts(await bench.acceptAtOnce(3, { window: 4 })), [2, 0, 0]);
        for (const { id } of exporters) {
            assert.equal((await bench.listed({ state: 'queued', exporterId: id })).length, 4);
            assert.equal((await bench.listed({ state: 'pending', exporterId: id })).length, 2);
        }
    },

    async 'hands out no more at once than the share of the slots'(bench) {
        await bench.setTime(at(0));
        await bench.deliveries.keepAlive({ id: randomUUID(), process: 'one', slots: { default: 8 } }, 1_000_000);
        await bench.addExporter();
        assert.deepEqual(counts(await bench.acceptAtOnce(3)), [1, 1, 1], 'a new exporter counts as slow: it has half of them');
        await bench.addExporter();
        assert.deepEqual(counts(await bench.acceptAtOnce(3)), [1, 0, 0], 'that is all that the first has left of their half');
    },

    async 'hands nothing out at once before what is older and due'(bench) {
        const { id } = await bench.addExporter();
        const older = only(await bench.publish());
        const [accepted] = await bench.acceptAtOnce();
        assert.deepEqual(accepted?.handedOut, []);
        const newer = only(accepted?.deliveries ?? []);
        await bench.assertDelivery(newer, { state: 'pending', dueAt: at(0) });
        assert.deepEqual(await bench.dispatchedIds(), [older, newer]);

        await bench.record((await bench.claim([older, newer])).map((claim) => failure(claim, 1000, { health: 'none' })));
        await bench.publishTest(id, at(60));
        assert.deepEqual(counts(await bench.acceptAtOnce(1, { now: at(60) })), [1], 'retries are not due yet, a test waits for nobody');
    },

    async 'hands first tries out at once beside retries that are due, and leaves an eighth of the window to those'(bench) {
        await bench.addExporter();
        await bench.publish({}, {});
        await bench.record((await bench.claimDue()).map((claim) => failure(claim, 1_000, { health: 'none' })));
        const due = { now: at(2_000), window: 4 };
        assert.deepEqual(counts(await bench.acceptAtOnce(1, due)), [1]);
        assert.deepEqual(counts(await bench.acceptAtOnce(2, due)), [1, 1]);
        assert.deepEqual(counts(await bench.acceptAtOnce(1, due)), [0], 'the last place is left');
        assert.equal((await bench.dispatch(due)).length, 1);
    },

    async 'hands nothing out at once to an exporter whose breaker is open, at the time of its probe neither'(bench) {
        await bench.addExporter();
        for (const time of [0, 10, 20]) {
            await bench.publishAt(at(time));
            await bench.record([failure(only(await bench.claimDue({ now: at(time) })), NEVER)], at(time + 5));
        }
        assert.deepEqual(counts(await bench.acceptAtOnce(1, { now: at(500) })), [0]);
        await bench.record([failure(only(await bench.claimDue({ now: at(1100) })), NEVER)], at(1110));
        assert.deepEqual(counts(await bench.acceptAtOnce(1, { now: at(5000) })), [0], 'nothing is due but the probe');
        assert.equal((await bench.dispatch({ now: at(5000) })).length, 1);
    },

    async 'hands nothing out at once to an exporter that wants to be left alone, and to one that starts slowly'(bench) {
        const refuse = { health: 'none', pause: 1000 } as const;
        const claim = await bench.claimOne();
        await bench.record([failure(claim, NEVER, refuse)], at(0));
        assert.deepEqual(counts(await bench.acceptAtOnce(1, { now: at(500) })), [0]);
        await bench.record([failure(only(await bench.claimDue({ now: at(1000) })), NEVER, refuse)], at(1010));
        assert.deepEqual(counts(await bench.acceptAtOnce(1, { now: at(2500) })), [0], 'a probe comes first');
        await bench.record([success(only(await bench.claimDue({ now: at(2500) })))], at(2510));
        const recovered = await bench.claimDue({ now: at(2520) });
        assert.equal(recovered.length, 2);
        await bench.record(
            recovered.map((one) => failure(one, NEVER, { health: 'none' })),
            at(2530),
        );
        assert.deepEqual(counts(await bench.acceptAtOnce(1, { now: at(2540) })), [0], 'its window grows from 2 on');
    },

    async 'hands out no test at once, and nothing unless asked to'(bench) {
        const { id } = await bench.addExporter();
        const [test] = await bench.acceptAtOnce(1, {}, { exporterId: id });
        assert.deepEqual(test?.handedOut, []);
        await bench.assertDelivery(only(test?.deliveries ?? []), { state: 'pending' });
        const [plain] = await bench.deliveries.accept([forAll(sampleEvent())]);
        assert.deepEqual(plain?.handedOut, []);
        await bench.assertDelivery(only(plain?.deliveries ?? []), { state: 'pending' });
    },

    async 'dispatches with claims when it is said how soon they must begin'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish();
        const first = only(await bench.claimDue());
        await bench.fail([first], at(50));
        const { deliveryId } = first;
        const retry = only(await bench.dispatch({ now: at(60), beginWithin: BEGIN_WITHIN }));
        const { token } = present(retry.reservation);
        assert.deepEqual(retry, {
            deliveryId,
            exporterId: id,
            collector: 'default',
            attempt: 2,
            singleAttempt: false,
            reservation: { token, beginBy: at(60 + BEGIN_WITHIN).getTime(), generation: 0, attemptSinceReplay: 2, settings: 0 },
        });
        await bench.record([success(holderOf(retry), { begunAt: at(61) })], at(62));
        await bench.replay(deliveryId, at(63));
        const replayed = only(await bench.dispatch({ now: at(63), beginWithin: BEGIN_WITHIN }));
        assert.deepEqual([replayed.attempt, replayed.reservation?.attemptSinceReplay], [3, 1]);
        assert.notEqual(replayed.reservation?.token, token);
        await bench.publish();
        assert.equal(only(await bench.dispatch()).reservation, null);
    },

    async 'answers under a claim that was handed out with what is needed to send, and writes nothing'(bench) {
        const exporter = await bench.addExporter({ schedule: [1, 2], sealedHeaders: 'sealed too' });
        const event = sampleEvent({ body: '{"a":1}' });
        await bench.setTime(at(0));
        const [accepted] = await bench.deliveries.accept([forAll(event)], { handOut: { window: 9, breakerAfter: 3, beginWithin: 10 } });
        const { deliveryId, token } = holderOf(only(accepted?.handedOut ?? []));
        const expected: Claim = {
            deliveryId,
            token,
            claimedAt: at(5),
            attempt: 1,
            attemptSinceReplay: 1,
            singleAttempt: false,
            event: { ...event, createdAt: at(0) },
            message: null,
            exporter,
            generation: 0,
        };
        await bench.setTime(at(5));
        const session = randomUUID();
        await bench.deliveries.keepAlive({ id: session, process: 'a process', slots: {} }, 60_000);
        assert.deepEqual(await bench.deliveries.claim([read(deliveryId, token)], session), [expected]);
        assert.deepEqual(await bench.deliveries.claim([read(deliveryId, token)], session), [expected]);
        await bench.assertDelivery(deliveryId, { state: 'queued', attempts: 0 });
        assert.deepEqual(await bench.deliveries.attempts(deliveryId), []);
    },

    async 'answers nothing under a claim that holds no more'(bench) {
        const exporter = await bench.addExporter();
        const ended = await bench.handOutOne();
        const claimed = await bench.handOutOne();
        const changed = await bench.handOutOne();
        const last = await bench.handOutOne();
        const answers = async ({ deliveryId, token }: Holder) => {
            return only(await bench.deliveries.claim([read(deliveryId, token)], null));
        };
        assert.deepEqual(await bench.deliveries.claim([read(changed.deliveryId, randomUUID())], null), [null], 'of nobody');
        await bench.record([success(ended, { begunAt: at(1) })]);
        assert.equal(await answers(ended), null, 'its delivery has ended');
        await bench.claimHeld(claimed);
        assert.equal(await answers(claimed), null, 'its delivery was claimed');
        await bench.update(exporter.id, { state: 'stopped' }, at(60));
        assert.equal(await answers(changed), null, 'its exporter is stopped');
        await bench.assertDelivery(changed.deliveryId, { state: 'queued', attempts: 0 });
        await bench.remove(exporter.id, at(61));
        assert.equal(await answers(last), null, 'its exporter is gone');
    },

    async 'answers under claims no more than the bytes of the bodies allow'(bench) {
        await bench.addExporter();
        const held = [await bench.handOutOne(), await bench.handOutOne(), await bench.handOutOne()] as const;
        const requests = held.map(({ deliveryId, token }) => read(deliveryId, token));
        const { length } = sampleEvent().body;
        assert.equal((await bench.deliveries.claim(requests, null, 2 * length)).length, 2);
        assert.equal((await bench.deliveries.claim(requests, null, 1)).length, 1);
    },

    async 'claims what was handed out with a claim only for who has that'(bench) {
        await bench.addExporter();
        const holder = await bench.handOutOne();
        const { deliveryId } = holder;
        const request = { deliveryId, token: randomUUID(), duration: 60_000 };
        assert.deepEqual(await bench.deliveries.claim([request], null), [null]);
        assert.deepEqual(await bench.deliveries.claim([{ ...request, reservation: randomUUID() }], null), [null]);
        await bench.assertDelivery(deliveryId, { state: 'queued', attempts: 0 });
        const claim = await bench.claimHeld(holder);
        assert.notEqual(claim.token, holder.token);
        assertFields(claim, { attempt: 1, attemptSinceReplay: 1 });
        await bench.assertDelivery(deliveryId, { state: 'sending', attempts: 1 });
        assert.deepEqual(await bench.record([success(claim)]), [true]);
    },

    async 'counts the changes of what an exporter is sent, or whether, and no failures'(bench) {
        const { id } = await bench.addExporter();
        const generations = [await generationOf(bench, id)];
        for (const patch of [
            { url: 'https://receiver.example/other' },
            { sealedSecret: 'another' },
            { previousSecrets: [{ sealed: 'v1:old', until: at(9) }] },
            { sealedHeaders: 'sealed too', headerNames: ['x-one'] },
            { sealedAuthentication: 'sealed too', authentication: ['basic'] },
            { trust: 'self-signed' },
            { signatures: ['hex'] },
            { state: 'stopped' },
            { state: 'running' },
        ] satisfies ExporterPatch[]) {
            await bench.update(id, patch, at(1));
            generations.push(await generationOf(bench, id));
        }
        assert.deepEqual(
            generations,
            [...new Set(generations)].sort((a, b) => a - b),
            'higher each time',
        );

        await bench.publish({}, {}, {}, {}, {}, {});
        await bench.failInTurn(2, 0);
        await bench.record([success(present((await bench.claimDue({ now: at(20), limit: 1 }))[0]))], at(21));
        await bench.record([failure(present((await bench.claimDue({ now: at(22), limit: 1 }))[0]), 0, { pause: 5 })], at(23));
        assert.equal(await generationOf(bench, id), generations.at(-1), 'as before');
        const gone = present((await bench.claimDue({ now: at(50), limit: 1 }))[0]);
        const stops = { outcome: sampleOutcome('gone'), next: { state: 'exhausted' }, health: 'failure', stopReason: '410' } as const;
        await bench.record([success(gone, stops)], at(51));
        assert.ok((await generationOf(bench, id)) > present(generations.at(-1)), 'its receiver has stopped it');
    },
};

/** In milliseconds: no law takes that long. */
const NEVER = 10_000_000;

function read(deliveryId: string, token: string): ClaimRequest {
    return { deliveryId, token, duration: 60_000, reservation: token, keepsReservation: true };
}

/** How many deliveries of each were handed out. */
function counts(accepted: Awaited<ReturnType<WebhookBench['acceptAtOnce']>>): readonly number[] {
    return accepted.map(({ handedOut }) => handedOut.length);
}

/** That of the exporter's settings, as a `test` is handed out and claimed with, whatever state it is in. */
async function generationOf(bench: WebhookBench, exporterId: string): Promise<number> {
    const test = await bench.publishTest(exporterId, at(0));
    const handedOut = (await bench.dispatch({ window: 100, beginWithin: BEGIN_WITHIN })).find(({ deliveryId }) => deliveryId === test);
    const claim = await bench.claimHeld(holderOf(present(handedOut)));
    assert.equal(claim.generation, handedOut?.reservation?.generation);
    await bench.record([success(claim, { health: 'none' })], at(0));
    return claim.generation;
}
