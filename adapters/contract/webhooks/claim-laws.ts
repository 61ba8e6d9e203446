import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ClaimRequest, Dispatched, SweepOptions } from '../../../lib/webhooks/store.ts';
import { assertFields, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, forAll, inParallel, sampleEvent, success, type WebhookBench } from './fixture.ts';

/** Claims: who gets one, and what it holds. */
export const claimLaws: Laws<WebhookBench> = {
    async 'claims a queued delivery with its event and its exporter'(bench) {
        const exporter = await bench.addExporter({ schedule: [1, 2], previousSecretUntil: at(9), sealedHeaders: 'sealed too' });
        const event = sampleEvent({ body: '{"a":1}' });
        await bench.deliveries.accept([forAll(event)]);
        const request = requestFor(only(await bench.dispatchedIds()), at(10));
        assert.deepEqual(await bench.deliveries.claim([request]), [
            {
                deliveryId: request.deliveryId,
                token: request.token,
                attempt: 1,
                attemptSinceReplay: 1,
                singleAttempt: false,
                event,
                exporter,
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
        const [pending, done, retry, sending, queued] = await bench.publish({ createdAt: at(9) }, {}, {}, {}, {});
        await bench.dispatch();
        const [first, second] = await bench.claim([done, retry, sending].map(String));
        await bench.deliveries.recordOutcomes([success(present(first)), failure(present(second), at(5))]);

        const asked = [pending, done, retry, sending, randomUUID(), 'no-uuid', '', queued].map(String);
        const claims = await bench.deliveries.claim(asked.map((id) => requestFor(id)));
        const claimed = claims.map((one) => one?.deliveryId ?? null);
        assert.deepEqual(claimed, [...Array(7).fill(null), queued]);
        await bench.assertDelivery(String(pending), { attempts: 0 });
        await bench.assertDelivery(String(sending), { attempts: 1 });
    },

    async 'answers claims in the order in which they were asked for'(bench) {
        const requests = (await bench.queueMany(8)).toReversed().map((id) => requestFor(id));
        const claims = await bench.deliveries.claim(requests);
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
        const claims = (await inParallel(50, (index) => bench.deliveries.claim(requests[index] ?? []))).flat();
        const won = claims.filter((one) => one !== null);
        assert.deepEqual(won.map(({ deliveryId }) => deliveryId).sort(), [id, other].sort());
        await bench.assertDelivery(String(id), { attempts: 1 });
        assert.deepEqual(
            await bench.deliveries.recordOutcomes(won.map((one) => success(one))),
            [true, true],
            'the winners hold the claims',
        );
    },

    async 'lets the first of two claims in one call win'(bench) {
        const id = only(await bench.queueMany(1));
        const requests = [requestFor(id), requestFor(id)];
        const [first, second] = await bench.deliveries.claim(requests);
        assert.equal(first?.token, requests[0]?.token);
        assert.equal(second, null);
        assert.equal((await bench.deliveries.attempts(id)).length, 1);
    },

    async 'returns a delivery of a stopped exporter'(bench) {
        const exporter = await bench.addExporter();
        const id = only(await bench.publish());
        await bench.dispatch();
        await bench.exporters.update(exporter.id, { state: 'stopped' }, at(1));
        assert.deepEqual(await bench.deliveries.claim([requestFor(id)]), [null]);
        await bench.assertDelivery(id, { state: 'pending', attempts: 0, dueAt: at(0) });
        await bench.exporters.update(exporter.id, { state: 'running' }, at(2));
        assert.deepEqual(await bench.dispatchedIds(), [id]);
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
        await bench.exporters.remove(id, at(1));
        assert.deepEqual(await bench.deliveries.claim(ids.map((id) => requestFor(id))), [null]);
    },

    async 'counts the attempts since the last replay'(bench) {
        const first = await bench.claimOne();
        await bench.fail([first], at(10));
        assert.deepEqual(await bench.dispatch({ now: at(10) }), [{ deliveryId: first.deliveryId, collector: 'default', attempt: 2 }]);
        const second = only(await bench.claim([first.deliveryId], at(11)));
        assert.deepEqual([second.attempt, second.attemptSinceReplay], [2, 2]);
    },
};

/** Claims that ran out and jobs that were lost. */
export const sweepLaws: Laws<WebhookBench> = {
    async 'takes a claim away that ran out'(bench) {
        const { deliveryId } = await bench.claimOne();
        assert.deepEqual(await sweep(bench, { now: at(60_000) }), []);

        await bench.assertDelivery(deliveryId, { state: 'pending', dueAt: at(60_000), finishedAt: null, attempts: 1 });
        await bench.assertDelivery(deliveryId, { lastCode: 'interrupted' });
        const attempt = only(await bench.deliveries.attempts(deliveryId));
        assertFields(attempt, { number: 1, finishedAt: at(60_000), late: false });
        assert.deepEqual(
            { ...attempt.outcome, detail: '' },
            {
                code: 'interrupted',
                status: null,
                detail: '',
                retryAfter: null,
                timings: { dns: null, connect: null, tls: null, firstByte: null, total: 60_000 },
                address: null,
                fingerprint: null,
            },
        );
        assert.deepEqual(await bench.dispatch({ now: at(60_000) }), [{ deliveryId, collector: 'default', attempt: 2 }]);
    },

    async 'exhausts a test whose claim ran out'(bench) {
        const { id } = await bench.addExporter();
        const test = await bench.publishTest(id);
        await bench.claimDue();
        assert.deepEqual(await sweep(bench, { now: at(60_000) }), []);
        await bench.assertDelivery(test, { state: 'exhausted', finishedAt: at(60_000), lastCode: 'interrupted' });
    },

    async 'leaves a claim alone that has not run out'(bench) {
        const { deliveryId } = await bench.claimOne();
        assert.deepEqual(await sweep(bench, { now: at(59_999) }), []);
        await bench.assertDelivery(deliveryId, { state: 'sending' });
    },

    async 'tries fresh deliveries before an interrupted one'(bench) {
        const { deliveryId } = await bench.claimOne();
        await sweep(bench, { now: at(60_000) });
        const fresh = await bench.publish({ createdAt: at(70_000) });
        assert.deepEqual(await bench.dispatchedIds({ now: at(80_000) }), [...fresh, deliveryId]);
    },

    async 'counts no failure for an interrupted attempt'(bench) {
        const { exporter } = await bench.claimOne();
        await sweep(bench, { now: at(60_000) });
        assert.deepEqual(await bench.exporters.get(exporter.id), exporter);
    },

    async 'returns jobs that were queued too long ago'(bench) {
        const { id } = await bench.addExporter();
        const old = only(await bench.publish());
        await bench.dispatch({ now: at(0) });
        const fresh = only(await bench.publish());
        await bench.dispatch({ now: at(10) });
        await bench.exporters.update(id, { collector: 'west' }, at(1));

        const requeue = [{ deliveryId: old, collector: 'west', attempt: 1 }];
        assert.deepEqual(await sweep(bench, { now: at(20), queuedBefore: at(10) }), requeue);
        assert.deepEqual(await sweep(bench, { now: at(20), queuedBefore: at(10) }), [], 'renewed');
        assert.equal((await bench.claim([old, fresh])).length, 2, 'still queued');
    },

    async 'sweeps no more than the limit'(bench) {
        await bench.addExporter();
        await bench.publish(...Array(6).fill({}));
        await bench.claim((await bench.dispatchedIds()).slice(0, 3));
        for (const [requeued, interrupted] of [
            [2, 2],
            [1, 3],
        ]) {
            assert.equal((await sweep(bench, { now: at(60_000), queuedBefore: at(1), limit: 2 })).length, requeued);
            assert.equal((await bench.listed({ state: 'pending' })).length, interrupted);
        }
    },

    async 'finds each lost claim and job once when several sweep at once'(bench) {
        await bench.addExporter();
        await bench.publish(...Array(10).fill({}));
        await bench.claim((await bench.dispatchedIds()).slice(0, 5));
        const swept = await inParallel(8, () => sweep(bench, { now: at(60_000), queuedBefore: at(1) }));
        const requeued = swept.flat().map(({ deliveryId }) => deliveryId);
        assert.deepEqual([requeued.length, new Set(requeued).size], [5, 5]);
        assert.equal((await bench.listed({ state: 'pending' })).length, 5);
    },
};

async function sweep({ deliveries }: WebhookBench, overrides: Partial<SweepOptions>): Promise<readonly Dispatched[]> {
    return await deliveries.sweep({ now: at(0), queuedBefore: at(0), limit: 100, ...overrides });
}

function requestFor(deliveryId: string, now: Date = at(0)): ClaimRequest {
    return { deliveryId, token: randomUUID(), now, expiresAt: new Date(now.getTime() + 1000) };
}
