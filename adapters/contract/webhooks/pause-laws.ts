import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, holderOf, success, type WebhookBench } from './fixture.ts';

/** What becomes of the deliveries of an exporter that somebody has paused. */
export const pauseLaws: Laws<WebhookBench> = {
    async 'accepts for an exporter that is paused, and keeps it waiting until that is resumed'(bench) {
        const { id } = await bench.addExporter();
        await bench.update(id, { pausedAt: at(0) }, at(0));
        const accepted = await bench.acceptAtOnce(2);
        assert.deepEqual(
            accepted.map(({ deliveries, handedOut }) => [deliveries.length, handedOut.length]),
            [
                [1, 0],
                [1, 0],
            ],
        );
        assert.deepEqual(await bench.deliveries.dispatch({ window: 10, breakerAfter: 3, limit: 10 }), {
            handedOut: [],
            waitsFor: [],
        });

        const other = await bench.addExporter({ createdAt: at(1) });
        const [, theirs] = await bench.publishAt(at(1), {});
        const test = await bench.publishTest(id, at(2));
        assert.deepEqual(new Set(await bench.dispatchedIds({ now: at(2) })), new Set([theirs, test]), 'others, and a test, go on');
        assert.equal((await bench.exporters.get(other.id))?.pausedAt, null);

        await bench.update(id, { pausedAt: null }, at(3));
        assert.equal((await bench.dispatchedIds({ now: at(3) })).length, 3);
    },

    async 'keeps an exporter paused that is stopped and started'(bench) {
        const { id } = await bench.addExporter();
        await bench.update(id, { pausedAt: at(0) }, at(0));
        await bench.publish();
        await bench.update(id, { state: 'stopped' }, at(1));
        assert.deepEqual((await bench.update(id, { state: 'running' }, at(2))).pausedAt, at(0));
        assert.deepEqual(await bench.dispatchedIds({ now: at(2) }), []);
    },

    async 'claims nothing of an exporter that is paused, but a test'(bench) {
        const { id } = await bench.addExporter();
        const held = only((await bench.acceptAtOnce()).flatMap(({ handedOut }) => handedOut));
        const queued = only(await bench.publish());
        await bench.dispatch();
        await bench.update(id, { pausedAt: at(1) }, at(1));
        const test = await bench.publishTest(id, at(1));
        await bench.dispatch({ now: at(1) });

        const { token: reservation } = holderOf(held);
        const request = { deliveryId: held.deliveryId, token: randomUUID(), duration: 60_000, reservation };
        assert.deepEqual(await bench.deliveries.claim([{ ...request, keepsReservation: true }], null), [null]);
        assert.deepEqual(await bench.deliveries.claim([request], null), [null]);
        assert.deepEqual(
            (await bench.claim([queued, test], at(1))).map(({ deliveryId }) => deliveryId),
            [test],
        );
        await bench.assertDelivery(queued, { state: 'pending', attempts: 0 });

        await bench.update(id, { pausedAt: null }, at(2));
        const [again] = await bench.claimDue({ now: at(2) });
        assert.ok(present(again).generation > present(held.reservation).generation, 'settings that were read before are old');
    },

    async 'counts the time of a pause as none for which an exporter failed'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish({}, {});
        const [first, second] = await bench.claimDue();
        await bench.record([failure(present(first), 0)], at(100));
        await bench.update(id, { pausedAt: at(1_000) }, at(1_000));
        await bench.record([failure(present(second), 0)], at(1_010));
        await bench.update(id, { name: 'other' }, at(1_020));
        assert.deepEqual((await bench.exporters.health(id))?.failingSince, at(100));
        await bench.update(id, { pausedAt: null }, at(5_000));
        assert.deepEqual((await bench.exporters.health(id))?.failingSince, at(4_100));
        await bench.update(id, { pausedAt: null }, at(6_000));
        assert.deepEqual((await bench.exporters.health(id))?.failingSince, at(4_100), 'it was not paused');
    },

    async 'counts the time of a pause from the first failure in it'(bench) {
        const claimed = await bench.claimOne();
        const { id } = claimed.exporter;
        await bench.update(id, { pausedAt: at(1_000) }, at(1_000));
        await bench.record([failure(claimed, 0)], at(4_000));
        await bench.update(id, { pausedAt: null }, at(5_000));
        assert.deepEqual((await bench.exporters.health(id))?.failingSince, at(5_000));
    },

    async 'ends what was being sent when its exporter was paused'(bench) {
        const held = await bench.claimOne();
        await bench.update(held.exporter.id, { pausedAt: at(1) }, at(1));
        assert.deepEqual(await bench.record([success(held)], at(2)), [true]);
        await bench.assertDelivery(held.deliveryId, { state: 'delivered' });
    },
};
