import assert from 'node:assert/strict';
import { ids, inParallel, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, success, type WebhookBench } from './fixture.ts';

/** Which deliveries are handed out, when and in what order. */
export const dispatchLaws: Laws<WebhookBench> = {
    async 'hands out what is due, once'(bench) {
        const { id: exporterId } = await bench.addExporter({ collector: 'west' });
        const id = only(await bench.publish());
        const first = { deliveryId: id, exporterId, collector: 'west', attempt: 1, singleAttempt: false, reservation: null };
        assert.deepEqual(await bench.dispatch(), [first]);
        await bench.assertDelivery(id, { state: 'queued' });
        assert.deepEqual(await bench.dispatch(), []);
    },

    async 'keeps back what is not due'(bench) {
        await bench.addExporter();
        const [first] = await bench.publishAt(at(1));
        const [second] = await bench.publishAt(at(2));
        assert.deepEqual(await bench.dispatchedIds({ now: at(0) }), []);
        assert.deepEqual(await bench.dispatchedIds({ now: at(1) }), [first]);
        assert.deepEqual(await bench.dispatchedIds({ now: at(2) }), [second]);
    },

    async 'names the collector that the exporter has now'(bench) {
        const { id } = await bench.addExporter({ collector: 'west' });
        const deliveryId = only(await bench.publish());
        await bench.update(id, { collector: 'east' }, at(1));
        assert.deepEqual(await bench.dispatch(), [
            { deliveryId, exporterId: id, collector: 'east', attempt: 1, singleAttempt: false, reservation: null },
        ]);
        await bench.assertDelivery(deliveryId, { collector: 'east' });
    },

    async 'fills a window per exporter and refills it'(bench) {
        await bench.addExporter();
        await bench.addExporter({ createdAt: at(1) });
        const published = await bench.publish({}, {}, {});
        const first = await bench.dispatchedIds({ window: 2 });
        assert.deepEqual(first.toSorted(), published.slice(0, 4).sort());
        const claims = await bench.claim([published[0], published[2]].map(String));
        assert.deepEqual(await bench.dispatchedIds({ window: 2 }), [], 'queued and sending both count');

        await bench.record([success(present(claims[0]))]);
        assert.deepEqual(await bench.dispatchedIds({ window: 2 }), [published[4]]);
    },

    async 'never hands out twice or overfills a window when several dispatch at once'(bench) {
        const exporters = [await bench.addExporter(), await bench.addExporter()];
        await bench.publish(...Array(20).fill({}));
        const options = { window: 7, limit: 5 };
        const rounds = await inParallel(16, async () => {
            const before = await bench.dispatchedIds(options);
            // what goes before all that is known must not come on top of it
            await Promise.all(exporters.map(({ id }) => bench.publishTest(id)));
            return [...before, ...(await bench.dispatchedIds(options))];
        });
        const handed = [...rounds.flat(), ...(await bench.dispatchedIds({ window: 7 }))];
        const inFlight = await bench.listed({ state: 'queued' });
        assert.deepEqual(ids(inFlight).sort(), handed.sort(), 'each delivery once');
        for (const { id } of exporters) {
            const kinds = inFlight.filter(({ exporterId }) => exporterId === id).map(({ kind }) => kind);
            const tests = kinds.filter((kind) => kind === 'test').length;
            assert.deepEqual([tests, kinds.length - tests <= 7], [7, true]);
        }
    },

    async 'empties a backlog when several dispatch and record at once'(bench) {
        await bench.addExporter();
        await bench.addExporter();
        const published = await bench.publish(...Array(30).fill({}));
        const lane = async (): Promise<number> => {
            let sent = 0;
            for (let turn = 0; turn < 500; turn++) {
                const claims = await bench.claimDue({ window: 3, limit: 4 });
                const recorded = await bench.record(claims.map((one) => success(one)));
                sent += recorded.filter(Boolean).length;
                if (claims.length === 0 && (await bench.deliveries.list({ state: 'pending', limit: 1 })).length === 0) {
                    return sent;
                }
            }
            assert.fail('The backlog is never empty');
        };
        const sent = (await inParallel(5, lane)).reduce((sum, count) => sum + count);
        assert.equal(sent, published.length);
    },

    async 'hands out single attempts first, whatever state the exporter is in'(bench) {
        const running = await bench.addExporter();
        const stopped = await bench.addExporter({ state: 'stopped' });
        const ordinary = only(await bench.publish());
        const tests = [await bench.publishTest(stopped.id, at(3)), await bench.publishTest(running.id, at(4))];
        assert.deepEqual(await bench.dispatchedIds({ now: at(5), limit: 2 }), tests);
        assert.deepEqual(await bench.dispatchedIds({ now: at(5), limit: 2 }), [ordinary]);
    },

    async 'counts single attempts in the window'(bench) {
        const { id } = await bench.addExporter();
        const [ordinary] = await bench.publish({}, {});
        const tests = [await bench.publishTest(id), await bench.publishTest(id), await bench.publishTest(id)];
        assert.deepEqual(await bench.dispatchedIds({ window: 2 }), tests.slice(0, 2));
        assert.deepEqual(await bench.dispatchedIds({ window: 4 }), [tests[2], ordinary]);
    },

    async 'keeps back what a stopped exporter would receive'(bench) {
        const { id } = await bench.addExporter();
        const delivery = only(await bench.publish());
        await bench.update(id, { state: 'stopped' }, at(1));
        assert.deepEqual(await bench.dispatchedIds(), []);
        await bench.update(id, { state: 'running' }, at(2));
        assert.deepEqual(await bench.dispatchedIds(), [delivery]);
    },

    async 'hands out first tries before retries'(bench) {
        await bench.addExporter();
        const old = await bench.publish({}, {});
        await bench.fail(await bench.claimDue(), at(10));
        const fresh = await bench.publishAt(at(20), {}, {});
        assert.deepEqual(await bench.dispatchedIds({ now: at(99), window: 3 }), [...fresh, old[0]]);
    },

    async 'hands out older before newer'(bench) {
        await bench.addExporter();
        const [second] = await bench.publishAt(at(2));
        const [first] = await bench.publishAt(at(1));
        const third = await bench.publishAt(at(2), {}, {}, {});
        assert.deepEqual(await bench.dispatchedIds({ now: at(5), window: 4 }), [first, second, ...third.slice(0, 2)]);
    },

    async 'hands out no more than the limit, exporters in turn'(bench) {
        await bench.addExporter();
        await bench.publish({}, {}, {}, {});
        await bench.addExporter();
        await bench.publishAt(at(1));
        const handed = await bench.dispatch({ now: at(1), limit: 2 });
        const deliveries = await Promise.all(handed.map(({ deliveryId }) => bench.deliveries.get(deliveryId)));
        assert.equal(handed.length, 2);
        assert.equal(new Set(deliveries.map((delivery) => delivery?.exporterId)).size, 2);
    },
};
