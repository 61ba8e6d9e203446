import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { SliceCounts } from '../../../lib/webhooks/deliveries/activity.ts';
import { present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, success, type WebhookBench } from './fixture.ts';

const HOUR = 3_600_000;
const MAX = 100;
const NONE: SliceCounts = { deliveries: 0, delivered: 0, failed: 0, latency: null };

/** What became of deliveries, counted in slices of time. */
export const activityLaws: Laws<WebhookBench> = {
    async 'counts nothing where there is nothing'(bench) {
        assert.deepEqual(await slices(bench), [NONE, NONE]);
    },

    async 'counts deliveries in the slice in which they were accepted'(bench) {
        await bench.addExporter();
        for (const hour of [-1, 0, 0.5, 1, 2]) {
            await bench.publishAt(at(hour * HOUR), {});
        }
        assert.deepEqual(await slices(bench), [
            { ...NONE, deliveries: 2 },
            { ...NONE, deliveries: 1 },
        ]);
    },

    async 'counts what was delivered, and what came to anything else'(bench) {
        await bench.addExporter();
        await bench.publish({}, {}, {}, {});
        const [delivered, retried, exhausted] = await bench.claimDue({ limit: 3 });
        await bench.record([
            success(present(delivered)),
            failure(present(retried), 1_000),
            failure(present(exhausted), 0, { next: { state: 'exhausted' } }),
        ]);
        assert.deepEqual(await slices(bench), [{ deliveries: 4, delivered: 1, failed: 2, latency: { p50: 50, p95: 50 } }, NONE]);
    },

    async 'says within which time half, and nineteen of twenty, were delivered'(bench) {
        await bench.addExporter();
        await bench.publish(...Array.from({ length: 20 }, () => ({})));
        const claims = await bench.claimDue({ window: 20 });
        for (const [index, claim] of claims.entries()) {
            await bench.record([success(claim)], at(10 * (index + 1)));
        }
        assert.deepEqual((await slices(bench))[0]?.latency, { p50: 100, p95: 190 });
    },

    async 'looks at the newest of a slice, and at no more than it is told'(bench) {
        await bench.addExporter();
        await bench.publish({}, {});
        const [first] = await bench.claimDue({ limit: 1 });
        await bench.record([success(present(first))]);
        await bench.publishAt(at(HOUR), {});
        assert.deepEqual(await slices(bench, { max: 1 }), [
            { ...NONE, deliveries: 1 },
            { ...NONE, deliveries: 1 },
        ]);
    },

    async 'counts the deliveries of one exporter'(bench) {
        await bench.addExporter();
        const { id } = await bench.addExporter({ createdAt: at(1) });
        await bench.publish({});
        await bench.publishTest(id);
        assert.equal((await slices(bench, { exporterId: id }))[0]?.deliveries, 2);
        for (const exporterId of [randomUUID(), 'no-uuid']) {
            assert.deepEqual(await slices(bench, { exporterId }), [NONE, NONE]);
        }
    },
};

/** Of the two hours with which every law begins. */
async function slices(bench: WebhookBench, options: { readonly exporterId?: string; readonly max?: number } = {}) {
    return await present(bench.deliveries.activity?.([at(0), at(HOUR), at(2 * HOUR)], { max: MAX, ...options }));
}
