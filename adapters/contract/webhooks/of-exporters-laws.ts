import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { ids, present, unlessRefused } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, sampleEvent, type WebhookBench } from './fixture.ts';

/** Three exporters, and their deliveries of two events in the order of these, first the events. */
async function published(bench: WebhookBench) {
    const exporters = [];
    for (const time of [0, 1, 2]) {
        exporters.push((await bench.addExporter({ createdAt: at(time) })).id);
    }
    const [a, b, c] = exporters as [string, string, string];
    return { a, b, c, all: await bench.publish({}, { kind: 'ours' }) };
}

/** What is asked of several exporters has nothing of any other. */
export const ofExportersLaws: Laws<WebhookBench> = {
    async 'lists and counts the deliveries of several exporters, and of no other'(bench) {
        const { a, b, c, all } = await published(bench);
        const at3 = (...indexes: readonly number[]) => indexes.map((index) => present(all[index]));
        for (const [query, found] of [
            [{ exporterIds: [a, c] }, at3(5, 3, 2, 0)],
            [{ exporterIds: [b] }, at3(4, 1)],
            [{ exporterIds: [a, b, c, randomUUID(), 'no-uuid'] }, at3(5, 4, 3, 2, 1, 0)],
            [{ exporterIds: [] }, []],
            [{ exporterIds: [randomUUID()] }, []],
            [{ exporterIds: [a, c], exporterId: c }, at3(5, 2)],
            [{ exporterIds: [a, c], exporterId: b }, []],
            [{ exporterIds: [a, c], kind: 'ours' }, at3(5, 3)],
            [{ exporterIds: [a, c], state: 'pending', after: present(all[5]) }, at3(3, 2, 0)],
            [{ exporterIds: [a, c], since: at(0), until: at(1) }, at3(5, 3, 2, 0)],
        ] as const) {
            assert.deepEqual(ids(await bench.listed(query)), found, JSON.stringify(query));
            assert.equal(await bench.deliveries.count(query, 100), found.length, JSON.stringify(query));
        }
        assert.deepEqual(ids(await bench.deliveries.list({ exporterIds: [a, c], limit: 3 })), at3(5, 3, 2));
        assert.equal(await bench.deliveries.count({ exporterIds: [a, c] }, 3), 3);
        const { eventId } = present(await bench.deliveries.get(present(all[0])));
        assert.deepEqual(ids(await bench.listed({ exporterIds: [b, c], eventId })), at3(2, 1));
    },

    async 'lists the outcomes of several exporters, and of no other'(bench) {
        const { a, c } = await published(bench);
        await bench.fail(await bench.claimDue(), at(0), { next: { state: 'exhausted' } });
        const found = await bench.listed({ exporterIds: [a, c], outcome: 'connect_refused' });
        assert.deepEqual(new Set(found.map(({ exporterId }) => exporterId)), new Set([a, c]));
        assert.equal(found.length, 4);
        assert.equal(await bench.deliveries.count({ exporterIds: [a, c], state: 'exhausted' }, 9), 4);
    },
};

/** The same of what became of them. */
export const activityOfExportersLaws: Laws<WebhookBench> = {
    async 'counts in slices the deliveries of several exporters, and of no other'(bench) {
        const { a, b, c } = await published(bench);
        const counted = async (exporterIds: readonly string[], max = 9) =>
            (await present(bench.deliveries.activity?.([at(0), at(1_000)], { max, exporterIds })))[0]?.deliveries;
        assert.equal(await counted([a, c]), 4);
        assert.equal(await counted([a, b, c]), 6);
        assert.equal(await counted([a, b, c], 3), 3);
        assert.equal(await counted([]), 0);
        assert.equal(await counted([randomUUID(), 'no-uuid']), 0);
    },
};

/** The same of their replays. */
export const replaysOfExportersLaws: Laws<WebhookBench> = {
    async 'lists the newest replays of several exporters, and of no other'(bench) {
        const { a, b, c } = await published(bench);
        await bench.record((await bench.claimDue()).map((claim) => failure(claim, 0, { next: { state: 'exhausted' } })));
        const replays = present(bench.deliveries.replays);
        const planned = [];
        for (const exporterId of [a, b, c, b]) {
            planned.push((await replays.plan({ id: sampleEvent().id, exporterId, failedSince: at(0), rate: 1 })).id);
        }
        assert.deepEqual(ids(await replays.list(9)), planned.toReversed());
        assert.deepEqual(ids(await replays.list(9, [a, c])), [planned[2], planned[0]]);
        assert.deepEqual(ids(await replays.list(1, [a])), [planned[0]]);
        assert.deepEqual(await replays.list(9, []), []);
        assert.deepEqual(await replays.list(9, [randomUUID(), 'no-uuid']), []);
    },

    async 'lists the replays of several exporters that run, however many have begun since'(bench) {
        const { a, b, c } = await published(bench);
        await bench.record((await bench.claimDue()).map((claim) => failure(claim, 0, { next: { state: 'exhausted' } })));
        const replays = present(bench.deliveries.replays);
        const planned = [];
        for (const exporterId of [a, b, c, c, c]) {
            planned.push((await replays.plan({ id: sampleEvent().id, exporterId, failedSince: at(0), rate: 1 })).id);
        }
        for (const id of planned.slice(2)) {
            await replays.cancel(id);
        }
        const [ofA, ofB, , , newest] = planned;
        assert.deepEqual(ids(await replays.list(1, [a, c])), [newest, ofA]);
        assert.deepEqual(ids(await replays.list(1, [a, b, c])), [newest, ofB, ofA]);
        assert.deepEqual(ids(await replays.list(2, [c])), [newest, planned[3]]);
    },
};

/** What a store does that heeds no several exporters. It may refuse them, which it is never given. */
export const notOfExportersLaws: Laws<WebhookBench> = {
    async 'refuses several exporters, or lists and counts the deliveries of all, where it heeds none'(bench) {
        const { a, all } = await published(bench);
        const listed = (await unlessRefused(bench.listed({ exporterIds: [a] }))) ?? (await bench.listed());
        assert.deepEqual(ids(listed).toSorted(), all.toSorted());
        const counted = (await unlessRefused(bench.deliveries.count({ exporterIds: [a] }, 100))) ?? all.length;
        assert.equal(counted, all.length);
    },
};
