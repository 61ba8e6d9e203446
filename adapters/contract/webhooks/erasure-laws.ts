import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { EventSummary } from '../../../lib/webhooks/events/new-event.ts';
import { inParallel, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, sampleOutcome, success, type WebhookBench } from './fixture.ts';

/** Events whose bodies are erased, and what becomes of their deliveries. */
export const erasureLaws: Laws<WebhookBench> = {
    async 'keeps the row of an event whose body is erased'(bench) {
        await bench.addExporter();
        const delivery = only(await bench.publish({ kind: 'of_a_kind' }));
        const { eventId: id } = present(await bench.deliveries.get(delivery));
        const event = { id, kind: 'of_a_kind', createdAt: at(0) };
        assert.deepEqual(await bench.deliveries.event(id), { ...event, erasedAt: null });

        assert.deepEqual(await erase(bench, id, at(5)), { ...event, erasedAt: at(5), ended: 1 });
        assert.deepEqual(await bench.deliveries.event(id), { ...event, erasedAt: at(5) });
        await bench.assertDelivery(delivery, { eventId: id, kind: 'of_a_kind', createdAt: at(0) });
    },

    async 'erases a body once'(bench) {
        const { event } = await bench.claimOne();
        const erased = await erase(bench, event.id, at(5));
        assert.deepEqual(await erase(bench, event.id, at(9)), { ...erased, ended: 0 });
    },

    async 'knows nothing of an event that does not exist'({ deliveries }) {
        for (const id of [randomUUID(), 'no-uuid']) {
            assert.equal(await deliveries.event(id), null);
            await assert.rejects(deliveries.erase(id), { code: 'NOT_FOUND' });
        }
    },

    async 'ends the active deliveries of an erased event, and no others'(bench) {
        for (const name of ['one', 'two', 'three', 'four', 'five']) {
            await bench.addExporter({ name });
        }
        const deliveries = await bench.publish();
        const { eventId } = present(await bench.deliveries.get(present(deliveries[0])));
        const dispatched = await bench.dispatchedIds({ limit: 4 });
        const claims = await bench.claim(dispatched.slice(0, 3));
        await bench.record([success(present(claims[0])), failure(present(claims[1]), 0, { next: { state: 'exhausted' } })]);
        const others = await bench.publish();

        assert.equal((await erase(bench, eventId, at(77))).ended, 3);
        const ends = async (id: string): Promise<unknown> => {
            const delivery = present(await bench.deliveries.get(id));
            return [delivery.state, delivery.finishedAt];
        };
        assert.deepEqual(await Promise.all(dispatched.map(ends)), [
            ['delivered', at(50)],
            ['exhausted', at(50)],
            ['erased', at(77)],
            ['erased', at(77)],
        ]);
        assert.deepEqual((await bench.listed({ state: 'erased' })).length, 3);
        assert.deepEqual(await Promise.all(others.map(ends)), Array(5).fill(['pending', null]));
    },

    async 'takes the claims on an erased event away'(bench) {
        const held = await bench.claimOne();
        await erase(bench, held.event.id, at(30));
        const { outcome, finishedAt } = only(await bench.deliveries.attempts(held.deliveryId));
        assert.deepEqual([outcome?.code, outcome?.timings.total, finishedAt], ['interrupted', 30, at(30)]);

        assert.deepEqual(await bench.record([success(held)]), [false]);
        const late = only(await bench.deliveries.attempts(held.deliveryId));
        assert.deepEqual([late.outcome, late.late], [sampleOutcome('delivered'), true]);
        await bench.assertDelivery(held.deliveryId, { state: 'erased' });
    },

    async 'claims nothing of an erased event, by whatever it was handed out with'(bench) {
        await bench.addExporter();
        const reserved = await bench.handOutOne();
        const queued = only(await bench.publish());
        await bench.dispatch();
        for (const id of [reserved.deliveryId, queued]) {
            await erase(bench, present(await bench.deliveries.get(id)).eventId, at(1));
        }

        const requests = [
            {
                deliveryId: reserved.deliveryId,
                token: reserved.token,
                duration: 60_000,
                reservation: reserved.token,
                keepsReservation: true,
            },
            { deliveryId: reserved.deliveryId, token: randomUUID(), duration: 60_000, reservation: reserved.token },
            { deliveryId: queued, token: randomUUID(), duration: 60_000 },
        ];
        for (const request of requests) {
            assert.deepEqual(await bench.deliveries.claim([request], null), [null]);
        }
        const session = { id: randomUUID(), process: 'a process', slots: {} };
        const attempt = { deliveryId: reserved.deliveryId, token: reserved.token, claimedAt: at(0), duration: 60_000 };
        await bench.deliveries.keepAlive(session, 1000, { upTo: at(1), attempts: [attempt] });
        await bench.deliveries.sweep({ requeueAfter: 0, limit: 9 });
        assert.deepEqual(await bench.dispatchedIds({ now: at(9_999_999) }), []);
        await bench.assertDelivery(reserved.deliveryId, { state: 'erased' });
    },

    async 'refuses to replay a delivery of an erased event'(bench) {
        await bench.addExporter({ name: 'one' });
        await bench.addExporter({ name: 'two' });
        await bench.publish();
        const [one, two] = await bench.claimDue();
        await bench.record([success(present(one))]);
        await erase(bench, present(one).event.id, at(60));
        for (const { deliveryId } of [present(one), present(two)]) {
            const before = await bench.deliveries.get(deliveryId);
            await assert.rejects(bench.replay(deliveryId, at(99)), { code: 'CONFLICT', message: /erased/ });
            assert.deepEqual(await bench.deliveries.get(deliveryId), before);
        }
    },

    async 'leaves no delivery active when an event is erased while it is replayed'(bench) {
        for (let number = 0; number < 20; number += 1) {
            await bench.addExporter({ name: String(number) });
        }
        await bench.publish();
        const claims = await bench.claimDue({ limit: 100 });
        await bench.record(claims.map((claim) => success(claim)));

        const replaying = inParallel(claims.length, async (index) => {
            const [replayed] = await Promise.allSettled([bench.deliveries.replay(present(claims[index]).deliveryId)]);
            return replayed?.status === 'fulfilled';
        });
        const [replayed, erased] = await Promise.all([replaying, bench.deliveries.erase(present(claims[0]).event.id)]);
        assert.equal(erased.ended, replayed.filter(Boolean).length);
        const states = (await bench.listed()).map(({ state }) => state);
        assert.deepEqual(
            states.filter((state) => state !== 'delivered'),
            Array(erased.ended).fill('erased'),
        );
    },
};

async function erase(bench: WebhookBench, id: string, now: Date): Promise<EventSummary & { readonly ended: number }> {
    await bench.setTime(now);
    return await bench.deliveries.erase(id);
}
