import assert from 'node:assert/strict';
import type { SweepOptions, Swept } from '../../lib/webhooks/store.ts';
import { addExporter, at, claim, claimOne, dispatch, dispatchedIds, inParallel, only, publish, publishTest } from './webhook-samples.ts';
import type { Laws, WebhookStores } from './webhook-stores.ts';

export const sweepLaws: Laws = {
    'takes a claim away that ran out': async (stores) => {
        const { deliveryId } = await claimOne(stores);
        assert.deepEqual(await sweep(stores, { now: at(60_000) }), { requeue: [], interrupted: 1, exhausted: 0 });

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

    'exhausts a test whose claim ran out': async (stores) => {
        const { id } = await addExporter(stores);
        const test = await publishTest(stores, id);
        await claim(stores, await dispatchedIds(stores));
        assert.deepEqual(await sweep(stores, { now: at(60_000) }), { requeue: [], interrupted: 1, exhausted: 1 });
        const delivery = await stores.deliveries.get(test);
        assert.deepEqual([delivery?.state, delivery?.finishedAt, delivery?.lastCode], ['exhausted', at(60_000), 'interrupted']);
    },

    'leaves a claim alone that has not run out': async (stores) => {
        const { deliveryId } = await claimOne(stores);
        assert.deepEqual(await sweep(stores, { now: at(59_999) }), { requeue: [], interrupted: 0, exhausted: 0 });
        assert.equal((await stores.deliveries.get(deliveryId))?.state, 'sending');
    },

    'tries fresh deliveries before an interrupted one': async (stores) => {
        const { deliveryId } = await claimOne(stores);
        await sweep(stores, { now: at(60_000) });
        const fresh = await publish(stores, { createdAt: at(70_000) });
        assert.deepEqual(await dispatchedIds(stores, { now: at(80_000) }), [...fresh, deliveryId]);
    },

    'counts no failure for an interrupted attempt': async (stores) => {
        const { exporter } = await claimOne(stores);
        await sweep(stores, { now: at(60_000) });
        assert.deepEqual(await stores.exporters.get(exporter.id), exporter);
    },

    'returns jobs that were queued too long ago': async (stores) => {
        const { id } = await addExporter(stores);
        const old = only(await publish(stores));
        await dispatch(stores, { now: at(0) });
        const fresh = only(await publish(stores));
        await dispatch(stores, { now: at(10) });
        await stores.exporters.update(id, { collector: 'west' }, at(1));

        const requeue = [{ deliveryId: old, collector: 'west', attempt: 1 }];
        assert.deepEqual(await sweep(stores, { now: at(20), queuedBefore: at(10) }), { requeue, interrupted: 0, exhausted: 0 });
        assert.deepEqual(
            await sweep(stores, { now: at(20), queuedBefore: at(10) }),
            { requeue: [], interrupted: 0, exhausted: 0 },
            'renewed',
        );
        assert.equal((await claim(stores, [old, fresh])).length, 2, 'still queued');
    },

    'sweeps no more than the limit': async (stores) => {
        await addExporter(stores);
        await publish(stores, ...Array(6).fill({}));
        await claim(stores, (await dispatchedIds(stores)).slice(0, 3));
        const first = await sweep(stores, { now: at(60_000), queuedBefore: at(1), limit: 2 });
        const second = await sweep(stores, { now: at(60_000), queuedBefore: at(1), limit: 2 });
        assert.deepEqual(
            [first, second].map(({ requeue, interrupted }) => [requeue.length, interrupted]),
            [
                [2, 2],
                [1, 1],
            ],
        );
    },

    'finds each lost claim and job once when several sweep at once': async (stores) => {
        await addExporter(stores);
        await publish(stores, ...Array(10).fill({}));
        await claim(stores, (await dispatchedIds(stores)).slice(0, 5));
        const swept = await inParallel(8, () => sweep(stores, { now: at(60_000), queuedBefore: at(1) }));
        const requeued = swept.flatMap(({ requeue }) => requeue.map(({ deliveryId }) => deliveryId));
        assert.deepEqual([requeued.length, new Set(requeued).size], [5, 5]);
        assert.equal(
            swept.reduce((sum, { interrupted }) => sum + interrupted, 0),
            5,
        );
    },
};

async function sweep({ deliveries }: WebhookStores, given: Partial<SweepOptions>): Promise<Swept> {
    return await deliveries.sweep({ now: at(0), queuedBefore: at(0), limit: 100, ...given });
}
