import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type ExporterPageRequest, summaryOf } from '../../../lib/webhooks/exporters/exporter-lists.ts';
import { present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, success, type WebhookBench } from './fixture.ts';

const HOUR = 3_600_000;
const NONE = { deliveries: 0, delivered: 0, failed: 0 };

/** Exporters in pages, with how each fares. */
export const pageLaws: Laws<WebhookBench> = {
    async 'lists some exporters behind another one, oldest first, with how each fares'(bench) {
        assert.deepEqual(await page(bench), []);
        const exporters = [];
        for (const time of [0, 1, 1, 2]) {
            exporters.push((await bench.addExporter({ createdAt: at(time), name: `made at ${time}` })).id);
        }
        const [first, , third] = exporters;
        assert.deepEqual(await pagedIds(bench), exporters);
        assert.deepEqual(await pagedIds(bench, { limit: 3 }), exporters.slice(0, 3));
        assert.deepEqual(await pagedIds(bench, { limit: 2, after: present(first) }), exporters.slice(1, 3));
        assert.deepEqual(await pagedIds(bench, { after: present(third) }), exporters.slice(3));
        assert.deepEqual(await pagedIds(bench, { after: present(exporters.at(-1)) }), []);
        for (const after of [randomUUID(), 'no-uuid']) {
            assert.deepEqual(await pagedIds(bench, { after }), exporters, 'one that is gone is none');
        }
        await bench.publish({});
        const [claimed] = await bench.claimDue({ limit: 1 });
        await bench.record([failure(present(claimed), HOUR)], at(100));
        for (const { exporter, health } of await page(bench)) {
            assert.deepEqual(exporter, await bench.exporters.get(exporter.id));
            assert.deepEqual(health, await bench.exporters.health(exporter.id));
        }
    },

    async 'lists the exporters of an owner, and says of no other where they are'(bench) {
        const [ann, bob, anns] = await Promise.all(
            ['ann', 'bob', 'ann', null].map(async (owner, index) => (await bench.addExporter({ owner, createdAt: at(index) })).id),
        );
        assert.deepEqual(await pagedIds(bench, { owner: 'ann' }), [ann, anns]);
        assert.deepEqual(await pagedIds(bench, { owner: 'ann', after: present(ann) }), [anns]);
        assert.deepEqual(await pagedIds(bench, { owner: 'ann', after: present(bob) }), [ann, anns]);
        assert.deepEqual(await pagedIds(bench, { owner: 'carl' }), []);
    },

    async 'lists in full the exporters of an owner, and no other'(bench) {
        const made = [];
        for (const [index, owner] of ['ann', 'bob', 'ann', null].entries()) {
            made.push(await bench.addExporter({ owner, createdAt: at(index) }));
        }
        assert.deepEqual(await bench.exporters.list({ owner: 'ann' }), [made[0], made[2]]);
        assert.deepEqual(await bench.exporters.list({ owner: 'carl', patient: true }), []);
        assert.deepEqual(await bench.exporters.list({ patient: true }), made);
    },

    async 'counts what became of the deliveries to each exporter, in slices of time'(bench) {
        await bench.addExporter();
        const other = await bench.addExporter({ createdAt: at(1) });
        await bench.publish({}, {});
        const claims = await bench.claimDue({ window: 2 });
        const [first, second] = claims.filter(({ exporter }) => exporter.id === other.id);
        await bench.record([success(present(first)), failure(present(second), HOUR)]);
        await bench.publishAt(at(HOUR), {}, {}, {});
        const [ours, theirs] = await page(bench);
        assert.deepEqual(ours?.slices, [
            { ...NONE, deliveries: 2 },
            { ...NONE, deliveries: 3 },
        ]);
        assert.deepEqual(theirs?.slices, [
            { deliveries: 2, delivered: 1, failed: 1 },
            { ...NONE, deliveries: 3 },
        ]);
        assert.deepEqual((await page(bench, { max: 2 }))[0]?.slices[1], { ...NONE, deliveries: 2 });
    },

    async 'counts nothing for an exporter to which nothing was sent'(bench) {
        await bench.addExporter();
        assert.deepEqual((await page(bench))[0]?.slices, [NONE, NONE]);
    },
};

/** Names and states of exporters. */
export const summaryLaws: Laws<WebhookBench> = {
    async 'tells names and states of exporters, oldest first'(bench) {
        const second = await bench.addExporter({ createdAt: at(1), name: 'second', owner: 'ann' });
        const first = await bench.addExporter({ state: 'stopped', stopReason: 'gone', pausedAt: at(2) });
        const summaries = [first, second].map(summaryOf);
        assert.deepEqual(await present(bench.exporters.summaries?.({})), summaries);
        for (const [query, found] of [
            [{ ids: [second.id, randomUUID(), 'no-uuid'] }, [summaries[1]]],
            [{ ids: [] }, []],
            [{ owner: 'ann' }, [summaries[1]]],
            [{ owner: 'bob' }, []],
            [{ owner: 'ann', ids: [first.id] }, []],
        ] as const) {
            assert.deepEqual(await present(bench.exporters.summaries?.(query)), found, JSON.stringify(query));
        }
    },
};

/** Of the two hours with which every law begins. */
async function page(bench: WebhookBench, request: Partial<ExporterPageRequest> = {}) {
    return await present(bench.exporters.page?.({ bounds: [at(0), at(HOUR), at(2 * HOUR)], max: 100, limit: 100, ...request }));
}

async function pagedIds(bench: WebhookBench, request: Partial<ExporterPageRequest> = {}): Promise<readonly string[]> {
    return (await page(bench, request)).map(({ exporter }) => exporter.id);
}
