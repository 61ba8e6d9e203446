import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ClaimRequest, Dispatched, SweepOptions } from '../../../lib/webhooks/store.ts';
import type { Laws } from '../announce.ts';
import {
    addExporter,
    at,
    claim,
    claimOne,
    dispatch,
    dispatchedIds,
    failure,
    inParallel,
    nth,
    only,
    publish,
    publishTest,
    sampleEvent,
    success,
    type WebhookStores,
} from './fixture.ts';

/** Claims: who gets one, and what it holds. */
export const claimLaws: Laws<WebhookStores> = {
    async 'claims a queued delivery with its event and its exporter'(stores) {
        const exporter = await addExporter(stores, { schedule: [1, 2], previousSecretUntil: at(9), sealedHeaders: 'sealed too' });
        const event = sampleEvent({ body: '{"a":1}' });
        await stores.deliveries.accept([{ event, recipients: { types: ['investigation'] } }]);
        const request = requestFor(only(await dispatchedIds(stores)), at(10));
        assert.deepEqual(await stores.deliveries.claim([request]), [
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

    async 'opens an attempt with the claim'(stores) {
        const { deliveryId } = await claimOne(stores);
        const delivery = await stores.deliveries.get(deliveryId);
        assert.deepEqual([delivery?.state, delivery?.attempts, delivery?.lastCode, delivery?.finishedAt], ['sending', 1, null, null]);
        assert.deepEqual(await stores.deliveries.attempts(deliveryId), [
            { number: 1, startedAt: at(0), finishedAt: null, outcome: null, late: false },
        ]);
    },

    async 'claims nothing but what is queued'(stores) {
        await addExporter(stores);
        const [pending, done, retry, sending, queued] = await publish(stores, { createdAt: at(9) }, {}, {}, {}, {});
        await dispatch(stores);
        const [first, second] = await claim(stores, [done, retry, sending].map(String));
        assert.ok(first !== undefined && second !== undefined);
        await stores.deliveries.recordOutcomes([success(first), failure(second, at(5))]);

        const ids = [pending, done, retry, sending, randomUUID(), 'no-uuid', '', queued].map(String);
        const claims = await stores.deliveries.claim(ids.map((id) => requestFor(id)));
        assert.deepEqual(
            claims.map((one) => one?.deliveryId ?? null),
            [...Array(7).fill(null), queued],
        );
        assert.deepEqual(
            await Promise.all([pending, sending].map(async (id) => (await stores.deliveries.get(String(id)))?.attempts)),
            [0, 1],
        );
    },

    async 'answers claims in the order in which they were asked for'(stores) {
        await addExporter(stores);
        const ids = await publish(stores, ...Array(8).fill({}));
        await dispatch(stores);
        const requests = [...ids].reverse().map((id) => requestFor(id));
        const claims = await stores.deliveries.claim(requests);
        assert.deepEqual(
            claims.map((one) => [one?.deliveryId, one?.token]),
            requests.map(({ deliveryId, token }) => [deliveryId, token]),
        );
    },

    async 'lets one of fifty claims at once win'(stores) {
        await addExporter(stores);
        const [id, other] = await publish(stores, {}, {});
        await dispatch(stores);
        const requests = Array.from({ length: 50 }, (_, index) => {
            const both = [requestFor(String(id)), requestFor(String(other))];
            return index % 2 === 0 ? both : both.reverse();
        });
        const claims = (await inParallel(50, (index) => stores.deliveries.claim(nth(requests, index)))).flat();
        const won = claims.filter((one) => one !== null);
        assert.deepEqual(won.map(({ deliveryId }) => deliveryId).sort(), [id, other].sort());
        assert.equal((await stores.deliveries.get(String(id)))?.attempts, 1);
        assert.deepEqual(
            await stores.deliveries.recordOutcomes(won.map((one) => success(one))),
            [true, true],
            'the winners hold the claims',
        );
    },

    async 'lets the first of two claims in one call win'(stores) {
        await addExporter(stores);
        const id = only(await publish(stores));
        await dispatch(stores);
        const requests = [requestFor(id), requestFor(id)];
        const [first, second] = await stores.deliveries.claim(requests);
        assert.equal(first?.token, requests[0]?.token);
        assert.equal(second, null);
        assert.equal((await stores.deliveries.attempts(id)).length, 1);
    },

    async 'returns a delivery of a stopped exporter'(stores) {
        const exporter = await addExporter(stores);
        const id = only(await publish(stores));
        await dispatch(stores);
        await stores.exporters.update(exporter.id, { state: 'stopped' }, at(1));
        assert.deepEqual(await stores.deliveries.claim([requestFor(id)]), [null]);

        const delivery = await stores.deliveries.get(id);
        assert.deepEqual([delivery?.state, delivery?.attempts, delivery?.dueAt], ['pending', 0, at(0)]);
        await stores.exporters.update(exporter.id, { state: 'running' }, at(2));
        assert.deepEqual(await dispatchedIds(stores), [id]);
    },

    async 'claims a test of a stopped exporter'(stores) {
        const { id } = await addExporter(stores, { state: 'stopped' });
        await publishTest(stores, id);
        const test = only(await claim(stores, await dispatchedIds(stores)));
        assert.deepEqual([test.singleAttempt, test.exporter.state], [true, 'stopped']);
    },

    async 'claims nothing of a removed exporter'(stores) {
        const { id } = await addExporter(stores);
        await publish(stores);
        const ids = await dispatchedIds(stores);
        await stores.exporters.remove(id, at(1));
        assert.deepEqual(await stores.deliveries.claim(ids.map((id) => requestFor(id))), [null]);
    },

    async 'counts the attempts since the last replay'(stores) {
        const first = await claimOne(stores);
        await stores.deliveries.recordOutcomes([failure(first, at(10))]);
        assert.deepEqual(await dispatch(stores, { now: at(10) }), [{ deliveryId: first.deliveryId, collector: 'default', attempt: 2 }]);
        const second = only(await claim(stores, [first.deliveryId], at(11)));
        assert.deepEqual([second.attempt, second.attemptSinceReplay], [2, 2]);
    },
};

/** Claims that ran out and jobs that were lost. */
export const sweepLaws: Laws<WebhookStores> = {
    async 'takes a claim away that ran out'(stores) {
        const { deliveryId } = await claimOne(stores);
        assert.deepEqual(await sweep(stores, { now: at(60_000) }), []);

        const delivery = await stores.deliveries.get(deliveryId);
        assert.deepEqual([delivery?.state, delivery?.dueAt, delivery?.finishedAt], ['pending', at(60_000), null]);
        assert.deepEqual([delivery?.lastCode, delivery?.attempts], ['interrupted', 1]);
        const attempt = only(await stores.deliveries.attempts(deliveryId));
        assert.deepEqual([attempt.number, attempt.finishedAt, attempt.late], [1, at(60_000), false]);
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
        assert.deepEqual(await dispatch(stores, { now: at(60_000) }), [{ deliveryId, collector: 'default', attempt: 2 }]);
    },

    async 'exhausts a test whose claim ran out'(stores) {
        const { id } = await addExporter(stores);
        const test = await publishTest(stores, id);
        await claim(stores, await dispatchedIds(stores));
        assert.deepEqual(await sweep(stores, { now: at(60_000) }), []);
        const delivery = await stores.deliveries.get(test);
        assert.deepEqual([delivery?.state, delivery?.finishedAt, delivery?.lastCode], ['exhausted', at(60_000), 'interrupted']);
    },

    async 'leaves a claim alone that has not run out'(stores) {
        const { deliveryId } = await claimOne(stores);
        assert.deepEqual(await sweep(stores, { now: at(59_999) }), []);
        assert.equal((await stores.deliveries.get(deliveryId))?.state, 'sending');
    },

    async 'tries fresh deliveries before an interrupted one'(stores) {
        const { deliveryId } = await claimOne(stores);
        await sweep(stores, { now: at(60_000) });
        const fresh = await publish(stores, { createdAt: at(70_000) });
        assert.deepEqual(await dispatchedIds(stores, { now: at(80_000) }), [...fresh, deliveryId]);
    },

    async 'counts no failure for an interrupted attempt'(stores) {
        const { exporter } = await claimOne(stores);
        await sweep(stores, { now: at(60_000) });
        assert.deepEqual(await stores.exporters.get(exporter.id), exporter);
    },

    async 'returns jobs that were queued too long ago'(stores) {
        const { id } = await addExporter(stores);
        const old = only(await publish(stores));
        await dispatch(stores, { now: at(0) });
        const fresh = only(await publish(stores));
        await dispatch(stores, { now: at(10) });
        await stores.exporters.update(id, { collector: 'west' }, at(1));

        const requeue = [{ deliveryId: old, collector: 'west', attempt: 1 }];
        assert.deepEqual(await sweep(stores, { now: at(20), queuedBefore: at(10) }), requeue);
        assert.deepEqual(await sweep(stores, { now: at(20), queuedBefore: at(10) }), [], 'renewed');
        assert.equal((await claim(stores, [old, fresh])).length, 2, 'still queued');
    },

    async 'sweeps no more than the limit'(stores) {
        await addExporter(stores);
        await publish(stores, ...Array(6).fill({}));
        await claim(stores, (await dispatchedIds(stores)).slice(0, 3));
        for (const [requeued, interrupted] of [
            [2, 2],
            [1, 3],
        ]) {
            assert.equal((await sweep(stores, { now: at(60_000), queuedBefore: at(1), limit: 2 })).length, requeued);
            assert.equal((await stores.deliveries.list({ state: 'pending', limit: 9 })).length, interrupted);
        }
    },

    async 'finds each lost claim and job once when several sweep at once'(stores) {
        await addExporter(stores);
        await publish(stores, ...Array(10).fill({}));
        await claim(stores, (await dispatchedIds(stores)).slice(0, 5));
        const swept = await inParallel(8, () => sweep(stores, { now: at(60_000), queuedBefore: at(1) }));
        const requeued = swept.flat().map(({ deliveryId }) => deliveryId);
        assert.deepEqual([requeued.length, new Set(requeued).size], [5, 5]);
        assert.equal((await stores.deliveries.list({ state: 'pending', limit: 9 })).length, 5);
    },
};

async function sweep({ deliveries }: WebhookStores, overrides: Partial<SweepOptions>): Promise<readonly Dispatched[]> {
    return await deliveries.sweep({ now: at(0), queuedBefore: at(0), limit: 100, ...overrides });
}

function requestFor(deliveryId: string, now: Date = at(0)): ClaimRequest {
    return { deliveryId, token: randomUUID(), now, expiresAt: new Date(now.getTime() + 1000) };
}
