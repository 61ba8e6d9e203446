import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Laws } from '../announce.ts';
import {
    addExporter,
    at,
    claim,
    claimOne,
    dispatch,
    dispatchedIds,
    failure,
    nth,
    only,
    publish,
    publishTest,
    success,
    type WebhookStores,
} from './fixture.ts';

/** Deliveries as they are listed, looked at and replayed. */
export const deliveryLaws: Laws<WebhookStores> = {
    async 'knows nothing of a delivery that does not exist'({ deliveries }) {
        for (const id of [randomUUID(), 'no-uuid']) {
            assert.equal(await deliveries.get(id), null);
            assert.deepEqual(await deliveries.attempts(id), []);
            await assert.rejects(deliveries.replay(id, at(0)), { code: 'NOT_FOUND' });
            assert.deepEqual(await deliveries.list({ exporterId: id, limit: 9 }), []);
            assert.deepEqual(await deliveries.list({ after: id, limit: 9 }), []);
        }
    },

    async 'lists the newest first, page by page'(stores) {
        await addExporter(stores);
        const ids = await publish(stores, { createdAt: at(2) }, { createdAt: at(1) }, {}, {}, {});
        const newestFirst = await Promise.all([...ids].reverse().map((id) => stores.deliveries.get(id)));
        assert.deepEqual(await stores.deliveries.list({ limit: 2 }), newestFirst.slice(0, 2));
        assert.deepEqual(await stores.deliveries.list({ limit: 2, after: nth(ids, 3) }), newestFirst.slice(2, 4));
        assert.deepEqual(await stores.deliveries.list({ limit: 2, after: nth(ids, 1) }), newestFirst.slice(4));
        assert.deepEqual(await stores.deliveries.list({ limit: 2, after: nth(ids, 0) }), []);
    },

    async 'lists the deliveries of a state'(stores) {
        const { id } = await addExporter(stores);
        const ids = await publish(stores, {}, {}, {}, {}, { createdAt: at(9) });
        const [delivered, exhausted] = await claim(stores, (await dispatchedIds(stores)).slice(0, 3));
        assert.ok(delivered !== undefined && exhausted !== undefined);
        await stores.deliveries.recordOutcomes([success(delivered), failure(exhausted, at(0), { next: { state: 'exhausted' } })]);

        const states = ['delivered', 'exhausted', 'sending', 'queued', 'pending'] as const;
        const listed = await Promise.all(states.map((state) => stores.deliveries.list({ state, limit: 9 })));
        assert.deepEqual(
            listed.map((some) => some.map(({ id }) => id)),
            ids.map((id) => [id]),
        );
        await stores.exporters.remove(id, at(1));
        const cancelled = await stores.deliveries.list({ state: 'cancelled', limit: 9 });
        assert.deepEqual(
            cancelled.map(({ id }) => id),
            ids.slice(2).reverse(),
        );
    },

    async 'lists the deliveries of an exporter'(stores) {
        await addExporter(stores);
        const { id } = await addExporter(stores, { createdAt: at(1) });
        const ids = (await publish(stores, {}, {}, {})).filter((_, index) => index % 2 === 1).reverse();
        assert.deepEqual(
            (await stores.deliveries.list({ exporterId: id, limit: 9 })).map(({ id }) => id),
            ids,
        );
        const page = await stores.deliveries.list({ exporterId: id, state: 'pending', after: nth(ids, 0), limit: 1 });
        assert.deepEqual(
            page.map(({ id }) => id),
            [ids[1]],
        );
    },

    async 'lists attempts first to last'(stores) {
        const first = await claimOne(stores);
        for (const number of [2, 3]) {
            const held = number === 2 ? first : only(await claim(stores, [first.deliveryId], at(10)));
            await stores.deliveries.recordOutcomes([failure(held, at(10))]);
            await dispatch(stores, { now: at(10) });
        }
        await claim(stores, [first.deliveryId], at(30));
        const attempts = await stores.deliveries.attempts(first.deliveryId);
        assert.deepEqual(
            attempts.map(({ number, startedAt, outcome }) => [number, startedAt, outcome?.code]),
            [
                [1, at(0), 'connect_refused'],
                [2, at(10), 'connect_refused'],
                [3, at(30), undefined],
            ],
        );
    },

    async 'starts the retry schedule anew for a replayed delivery'(stores) {
        for (const state of ['delivered', 'exhausted'] as const) {
            const first = await claimOne(stores);
            await stores.deliveries.recordOutcomes([failure(first, at(10))]);
            await dispatch(stores, { now: at(10) });
            const second = only(await claim(stores, [first.deliveryId], at(10)));
            await stores.deliveries.recordOutcomes([success(second, { next: { state } })]);
            const before = await stores.deliveries.get(first.deliveryId);

            const replayed = await stores.deliveries.replay(first.deliveryId, at(99));
            assert.deepEqual(replayed, { ...before, state: 'pending', dueAt: at(99), finishedAt: null });
            assert.deepEqual(await stores.deliveries.get(first.deliveryId), replayed);
            assert.deepEqual(await dispatchedIds(stores, { now: at(98) }), []);
            assert.deepEqual(await dispatch(stores, { now: at(99) }), [{ deliveryId: first.deliveryId, collector: 'default', attempt: 3 }]);
            const third = only(await claim(stores, [first.deliveryId], at(99)));
            assert.deepEqual([third.attempt, third.attemptSinceReplay, third.event], [3, 1, first.event]);
            await stores.exporters.remove(first.exporter.id, at(99));
        }
    },

    async 'tries a replayed delivery like a fresh one'(stores) {
        const held = await claimOne(stores);
        await stores.deliveries.recordOutcomes([failure(held, at(0), { next: { state: 'exhausted' } })]);
        const retry = only(await publish(stores));
        await stores.deliveries.recordOutcomes((await claim(stores, await dispatchedIds(stores))).map((one) => failure(one, at(10))));
        await stores.deliveries.replay(held.deliveryId, at(20));
        assert.deepEqual(await dispatchedIds(stores, { now: at(20) }), [held.deliveryId, retry]);
    },

    async 'replays a test as a single attempt'(stores) {
        const { id } = await addExporter(stores, { state: 'stopped' });
        const test = await publishTest(stores, id);
        const held = only(await claim(stores, await dispatchedIds(stores)));
        await stores.deliveries.recordOutcomes([failure(held, at(0), { next: { state: 'exhausted' }, health: 'none' })]);
        await stores.deliveries.replay(test, at(9));
        const again = only(await claim(stores, await dispatchedIds(stores, { now: at(9) })));
        assert.deepEqual([again.singleAttempt, again.attempt], [true, 2]);
    },

    async 'refuses to replay what is under way'(stores) {
        await addExporter(stores);
        const [sending, queued, pending] = await publish(stores, {}, {}, { createdAt: at(9) });
        await dispatch(stores);
        await claim(stores, [String(sending)]);
        for (const id of [sending, queued, pending]) {
            await assert.rejects(stores.deliveries.replay(String(id), at(9)), { code: 'CONFLICT' });
        }
        const states = (await stores.deliveries.list({ limit: 9 })).map(({ state }) => state);
        assert.deepEqual(states, ['pending', 'queued', 'sending']);
    },

    async 'refuses to replay for an exporter that was removed'(stores) {
        const held = await claimOne(stores);
        const cancelled = only(await publish(stores));
        await stores.deliveries.recordOutcomes([success(held)]);
        await stores.exporters.remove(held.exporter.id, at(60));
        for (const id of [held.deliveryId, cancelled]) {
            await assert.rejects(stores.deliveries.replay(id, at(99)), { code: 'CONFLICT' });
        }
        assert.equal((await stores.deliveries.get(held.deliveryId))?.state, 'delivered');
    },
};
