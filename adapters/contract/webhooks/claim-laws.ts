import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ClaimRequest } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { assertFields, inParallel, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, forAll, sampleEvent, success, type WebhookBench } from './fixture.ts';

/** Claims: who gets one, and what it holds. */
export const claimLaws: Laws<WebhookBench> = {
    async 'claims a queued delivery with its event and its exporter'(bench) {
        const exporter = await bench.addExporter({
            schedule: [1, 2],
            previousSecrets: [{ sealed: 'v1:old', until: at(9) }],
            sealedHeaders: 'sealed too',
        });
        const event = sampleEvent({ body: '{"a":1}' });
        await bench.setTime(at(0));
        await bench.deliveries.accept([forAll(event)]);
        const request = requestFor(only(await bench.dispatchedIds()));
        await bench.setTime(at(10));
        assert.deepEqual(await bench.deliveries.claim([request], null), [
            {
                deliveryId: request.deliveryId,
                token: request.token,
                claimedAt: at(10),
                attempt: 1,
                attemptSinceReplay: 1,
                singleAttempt: false,
                event: { ...event, createdAt: at(0) },
                message: null,
                exporter,
                generation: 0,
            },
        ]);
    },

    async 'opens an attempt with the claim'(bench) {
        const { deliveryId } = await bench.claimOne();
        await bench.assertDelivery(deliveryId, { state: 'sending', attempts: 1, lastCode: null, finishedAt: null });
        assert.deepEqual(await bench.deliveries.attempts(deliveryId), [
            { number: 1, startedAt: at(0), finishedAt: null, outcome: null, late: false },
        ]);
    },

    async 'claims nothing but what is queued'(bench) {
        await bench.addExporter();
        const [done, retry, sending, queued] = await bench.publish({}, {}, {}, {});
        await bench.dispatch();
        const [pending] = await bench.publishAt(at(9));
        const [first, second] = await bench.claim([done, retry, sending].map(String));
        await bench.record([success(present(first)), failure(present(second), 0)]);

        const asked = [pending, done, retry, sending, randomUUID(), 'no-uuid', '', queued].map(String);
        const claims = await bench.deliveries.claim(
            asked.map((id) => requestFor(id)),
            null,
        );
        const claimed = claims.map((one) => one?.deliveryId ?? null);
        assert.deepEqual(claimed, [...Array(7).fill(null), queued]);
        await bench.assertDelivery(String(pending), { attempts: 0 });
        await bench.assertDelivery(String(sending), { attempts: 1 });
    },

    async 'answers claims in the order in which they were asked for'(bench) {
        const requests = (await bench.queueMany(8)).toReversed().map((id) => requestFor(id));
        const claims = await bench.deliveries.claim(requests, null);
        for (const [index, { deliveryId, token }] of requests.entries()) {
            assertFields(claims[index], { deliveryId, token });
        }
    },

    async 'lets one of fifty claims at once win'(bench) {
        const [id, other] = await bench.queueMany(2);
        const requests = Array.from({ length: 50 }, (_, index) => {
            const both = [requestFor(String(id)), requestFor(String(other))];
            return index % 2 === 0 ? both : both.reverse();
        });
        const claims = (await inParallel(50, (index) => bench.deliveries.claim(requests[index] ?? [], null))).flat();
        const won = claims.filter((one) => one !== null);
        assert.deepEqual(won.map(({ deliveryId }) => deliveryId).sort(), [id, other].sort());
        await bench.assertDelivery(String(id), { attempts: 1 });
        assert.deepEqual(await bench.record(won.map((one) => success(one))), [true, true], 'the winners hold the claims');
    },

    async 'lets the first of two claims in one call win'(bench) {
        const id = only(await bench.queueMany(1));
        const requests = [requestFor(id), requestFor(id)];
        const [first, second] = await bench.deliveries.claim(requests, null);
        assert.equal(first?.token, requests[0]?.token);
        assert.equal(second, null);
        assert.equal((await bench.deliveries.attempts(id)).length, 1);
    },

    async 'returns a delivery of a stopped exporter'(bench) {
        const exporter = await bench.addExporter();
        const id = only(await bench.publish());
        await bench.dispatch();
        await bench.update(exporter.id, { state: 'stopped' }, at(1));
        assert.deepEqual(await bench.deliveries.claim([requestFor(id)], null), [null]);
        await bench.assertDelivery(id, { state: 'pending', attempts: 0, dueAt: at(0) });
        await bench.update(exporter.id, { state: 'running' }, at(2));
        assert.deepEqual(await bench.dispatchedIds(), [id]);
    },

    async 'returns a delivery whose exporter has moved to another collector than that of its job'(bench) {
        const { id: exporterId } = await bench.addExporter();
        const held = await bench.handOutOne();
        const queued = only(await bench.publish());
        const test = await bench.publishTest(exporterId);
        await bench.dispatch();
        await bench.update(exporterId, { collector: 'edge' }, at(1));

        const jobs = [{ ...requestFor(held.deliveryId), reservation: held.token }, requestFor(queued), requestFor(test)];
        const former = jobs.map((job) => ({ ...job, collector: 'default' }));
        const nothing = jobs.map(() => null);
        assert.deepEqual(await bench.deliveries.claim([{ ...present(former[0]), keepsReservation: true }], null), [null]);
        await bench.assertDelivery(held.deliveryId, { state: 'queued' });
        assert.deepEqual(await bench.deliveries.claim(former, null), nothing);
        for (const { deliveryId } of jobs) {
            await bench.assertDelivery(deliveryId, { state: 'pending', attempts: 0, dueAt: at(0) });
        }
        const handedOut = await bench.dispatch({ now: at(2) });
        assert.deepEqual(
            handedOut.map(({ collector }) => collector),
            jobs.map(() => 'edge'),
        );
        const moved = handedOut.map(({ deliveryId, collector }) => ({ ...requestFor(deliveryId), collector }));
        const claims = await bench.deliveries.claim(moved, null);
        assert.deepEqual(
            claims.map((one) => one?.exporter.collector),
            jobs.map(() => 'edge'),
        );
    },

    async 'claims a test of a stopped exporter'(bench) {
        const { id } = await bench.addExporter({ state: 'stopped' });
        await bench.publishTest(id);
        const test = only(await bench.claimDue());
        assert.deepEqual([test.singleAttempt, test.exporter.state], [true, 'stopped']);
    },

    async 'claims nothing of a removed exporter'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish();
        const ids = await bench.dispatchedIds();
        await bench.remove(id, at(1));
        assert.deepEqual(
            await bench.deliveries.claim(
                ids.map((id) => requestFor(id)),
                null,
            ),
            [null],
        );
    },

    async 'counts the attempts since the last replay'(bench) {
        const first = await bench.claimOne();
        await bench.fail([first], at(10));
        assert.deepEqual(await bench.dispatch({ now: at(10) }), [
            {
                deliveryId: first.deliveryId,
                exporterId: first.exporter.id,
                collector: 'default',
                attempt: 2,
                singleAttempt: false,
                reservation: null,
            },
        ]);
        const second = only(await bench.claim([first.deliveryId], at(11)));
        assert.deepEqual([second.attempt, second.attemptSinceReplay], [2, 2]);
    },

    async 'claims in order as many as the bytes of their bodies allow'(bench) {
        await bench.addExporter();
        const bodies = ['"é"', '"bb"', '"ccc"', '"d"'];
        const ids = await bench.publish(...bodies.map((body) => ({ body })));
        await bench.dispatch();
        const claimed = async (requested: readonly string[], maxBytes: number) => {
            const claims = await bench.deliveries.claim(requested.map(requestFor), null, maxBytes);
            return claims.map((claim) => claim?.event.body ?? null);
        };
        assert.deepEqual(await claimed([randomUUID(), ...ids], 8), [null, ...bodies.slice(0, 2)], 'the third would make it 13 bytes');
        await bench.assertDelivery(present(ids[2]), { state: 'queued', attempts: 0 });
        assert.deepEqual(await claimed(ids, 1), [null, null, '"ccc"'], 'the first of them is claimed all the same');
        assert.deepEqual(await claimed(ids, 3), [null, null, null, '"d"']);
        assert.deepEqual(await claimed(ids, 1), [null, null, null, null]);
    },
};

function requestFor(deliveryId: string): ClaimRequest {
    return { deliveryId, token: randomUUID(), duration: 1000 };
}
