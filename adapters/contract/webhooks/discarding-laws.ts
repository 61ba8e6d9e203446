import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Delivery } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, success, type WebhookBench } from './fixture.ts';

/** Deliveries that nobody wants to be sent any more. */
export const discardingLaws: Laws<WebhookBench> = {
    async 'ends what waits as cancelled, and hands it out no more'(bench) {
        await bench.addExporter();
        const [first, second] = await bench.publish({}, {});
        await bench.setTime(at(7));
        const before = await bench.deliveries.get(present(first));
        assert.deepEqual(await discard(bench, first), { ...before, state: 'cancelled', finishedAt: at(7) });
        assert.deepEqual(await bench.dispatchedIds({ now: at(100_000) }), [second]);
    },

    async 'ends what has failed for good, is held or is set aside, so that none of it is replayed'(bench) {
        const claim = await bench.claimOne();
        const { id } = claim.exporter;
        await bench.record([failure(claim, 0, { next: { state: 'exhausted' } })], at(10));
        const poisoned = only(await bench.publish());
        for (let time = 0; (await bench.deliveries.get(poisoned))?.state !== 'poisoned'; time += 200_000) {
            await bench.claimDue({ now: at(time) });
            await bench.setTime(at(time + 100_000));
            await bench.deliveries.sweep({ requeueAfter: 1_000_000, limit: 10 });
        }
        await bench.update(id, { state: 'stopped', stopReason: 'It is gone' }, at(10_000_000));
        const held = bench.deliveries.holds === true ? await bench.publish() : [];
        await bench.update(id, { state: 'running', stopReason: null }, at(10_000_000));
        for (const one of [claim.deliveryId, poisoned, ...held]) {
            await discard(bench, one);
            await bench.assertDelivery(one, { state: 'cancelled', finishedAt: await bench.deliveries.now() });
            await assert.rejects(bench.deliveries.replay(one), { code: 'CONFLICT' });
        }
        assert.deepEqual(await bench.dispatchedIds({ now: at(20_000_000) }), []);
    },

    async 'refuses what may be under way, was delivered or is cancelled, and changes nothing of it'(bench) {
        await bench.addExporter();
        const [queued] = await bench.publish();
        await bench.dispatch();
        await assertRefused(bench, queued, 'queued');
        const claim = only(await bench.claim([present(queued)], at(1)));
        await assertRefused(bench, queued, 'sending');
        await bench.record([success(claim)], at(10));
        await assertRefused(bench, queued, 'delivered');
        const [waiting] = await bench.publish();
        await discard(bench, waiting);
        await assertRefused(bench, waiting, 'cancelled');
    },

    async 'discards nothing that does not exist'(bench) {
        for (const id of [randomUUID(), 'no-uuid']) {
            await assert.rejects(discard(bench, id), { code: 'NOT_FOUND' });
        }
    },
};

async function discard({ deliveries }: WebhookBench, id: string | undefined): Promise<Delivery> {
    return await present(deliveries.discard, 'discard()').call(deliveries, present(id));
}

async function assertRefused(bench: WebhookBench, id: string | undefined, state: Delivery['state']): Promise<void> {
    const before = present(await bench.deliveries.get(present(id)));
    assert.equal(before.state, state);
    await assert.rejects(discard(bench, id), { code: 'CONFLICT' });
    assert.deepEqual(await bench.deliveries.get(present(id)), before);
}
