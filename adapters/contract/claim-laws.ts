import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ClaimRequest } from '../../lib/webhooks/store.ts';
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
    settlement,
} from './webhook-samples.ts';
import type { Laws } from './webhook-stores.ts';

export const claimLaws: Laws = {
    'claims a queued delivery with its event and its exporter': async (stores) => {
        const exporter = await addExporter(stores, { schedule: [1, 2], previousSecretUntil: at(9), sealedHeaders: 'sealed too' });
        const event = sampleEvent({ body: '{"a":1}' });
        await stores.deliveries.accept([{ event, addressees: { types: ['investigation'] } }]);
        const request = requestFor(only(await dispatchedIds(stores)), at(10));
        assert.deepEqual(await stores.deliveries.claim([request]), [
            { deliveryId: request.deliveryId, token: request.token, attempt: 1, round: 1, single: false, event, exporter },
        ]);
    },

    'opens an attempt with the claim': async (stores) => {
        const { deliveryId } = await claimOne(stores);
        const delivery = await stores.deliveries.get(deliveryId);
        assert.deepEqual([delivery?.state, delivery?.attempts, delivery?.lastCode, delivery?.finishedAt], ['sending', 1, null, null]);
        assert.deepEqual(await stores.deliveries.attempts(deliveryId), [
            { number: 1, startedAt: at(0), finishedAt: null, outcome: null, late: false },
        ]);
    },

    'claims nothing but what is queued': async (stores) => {
        await addExporter(stores);
        const [pending, done, retry, sending, queued] = await publish(stores, { createdAt: at(9) }, {}, {}, {}, {});
        await dispatch(stores);
        const [first, second] = await claim(stores, [done, retry, sending].map(String));
        assert.ok(first !== undefined && second !== undefined);
        await stores.deliveries.settle([settlement(first), failure(second, at(5))]);

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

    'answers claims in the order in which they were asked for': async (stores) => {
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

    'lets one of fifty claims at once win': async (stores) => {
        await addExporter(stores);
        const [id, other] = await publish(stores, {}, {});
        await dispatch(stores);
        const requests = Array.from({ length: 50 }, (_, place) => {
            const both = [requestFor(String(id)), requestFor(String(other))];
            return place % 2 === 0 ? both : both.reverse();
        });
        const claims = (await inParallel(50, (place) => stores.deliveries.claim(nth(requests, place)))).flat();
        const won = claims.filter((one) => one !== null);
        assert.deepEqual(won.map(({ deliveryId }) => deliveryId).sort(), [id, other].sort());
        assert.equal((await stores.deliveries.get(String(id)))?.attempts, 1);
        assert.deepEqual(await stores.deliveries.settle(won.map((one) => settlement(one))), [true, true], 'the winners hold the claims');
    },

    'lets the first of two claims in one call win': async (stores) => {
        await addExporter(stores);
        const id = only(await publish(stores));
        await dispatch(stores);
        const requests = [requestFor(id), requestFor(id)];
        const [first, second] = await stores.deliveries.claim(requests);
        assert.equal(first?.token, requests[0]?.token);
        assert.equal(second, null);
        assert.equal((await stores.deliveries.attempts(id)).length, 1);
    },

    'returns a delivery of a stopped exporter': async (stores) => {
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

    'claims a test of a stopped exporter': async (stores) => {
        const { id } = await addExporter(stores, { state: 'stopped' });
        await publishTest(stores, id);
        const test = only(await claim(stores, await dispatchedIds(stores)));
        assert.deepEqual([test.single, test.exporter.state], [true, 'stopped']);
    },

    'claims nothing of a removed exporter': async (stores) => {
        const { id } = await addExporter(stores);
        await publish(stores);
        const ids = await dispatchedIds(stores);
        await stores.exporters.remove(id, at(1));
        assert.deepEqual(await stores.deliveries.claim(ids.map((id) => requestFor(id))), [null]);
    },

    'counts the attempts of a round': async (stores) => {
        const first = await claimOne(stores);
        await stores.deliveries.settle([failure(first, at(10))]);
        assert.deepEqual(await dispatch(stores, { now: at(10) }), [{ deliveryId: first.deliveryId, collector: 'default', attempt: 2 }]);
        const second = only(await claim(stores, [first.deliveryId], at(11)));
        assert.deepEqual([second.attempt, second.round], [2, 2]);
    },
};

function requestFor(deliveryId: string, now: Date = at(0)): ClaimRequest {
    return { deliveryId, token: randomUUID(), now, expiresAt: new Date(now.getTime() + 1000) };
}
