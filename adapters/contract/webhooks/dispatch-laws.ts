import assert from 'node:assert/strict';
import type { Laws } from '../announce.ts';
import {
    addExporter,
    at,
    claim,
    dispatch,
    dispatchedIds,
    failure,
    inParallel,
    nth,
    only,
    publish,
    publishTest,
    success,
    type WebhookStores,
} from './fixture.ts';

/** Which deliveries are handed out, when and in what order. */
export const dispatchLaws: Laws<WebhookStores> = {
    async 'hands out what is due, once'(stores) {
        await addExporter(stores, { collector: 'west' });
        const id = only(await publish(stores));
        assert.deepEqual(await dispatch(stores), [{ deliveryId: id, collector: 'west', attempt: 1 }]);
        assert.equal((await stores.deliveries.get(id))?.state, 'queued');
        assert.deepEqual(await dispatch(stores), []);
    },

    async 'keeps back what is not due'(stores) {
        await addExporter(stores);
        const ids = await publish(stores, { createdAt: at(1) }, { createdAt: at(2) });
        assert.deepEqual(await dispatchedIds(stores, { now: at(0) }), []);
        assert.deepEqual(await dispatchedIds(stores, { now: at(1) }), [ids[0]]);
        assert.deepEqual(await dispatchedIds(stores, { now: at(2) }), [ids[1]]);
    },

    async 'names the collector that the exporter has now'(stores) {
        const { id } = await addExporter(stores, { collector: 'west' });
        const deliveryId = only(await publish(stores));
        await stores.exporters.update(id, { collector: 'east' }, at(1));
        assert.deepEqual(await dispatch(stores), [{ deliveryId, collector: 'east', attempt: 1 }]);
        assert.equal((await stores.deliveries.get(deliveryId))?.collector, 'east');
    },

    async 'fills a window per exporter and refills it'(stores) {
        await addExporter(stores);
        await addExporter(stores, { createdAt: at(1) });
        const ids = await publish(stores, {}, {}, {});
        const first = await dispatchedIds(stores, { window: 2 });
        assert.deepEqual([...first].sort(), ids.slice(0, 4).sort());
        const claims = await claim(stores, [nth(ids, 0), nth(ids, 2)]);
        assert.deepEqual(await dispatchedIds(stores, { window: 2 }), [], 'queued and sending both count');

        await stores.deliveries.recordOutcomes([success(nth(claims, 0))]);
        assert.deepEqual(await dispatchedIds(stores, { window: 2 }), [ids[4]]);
    },

    async 'never hands out twice or overfills a window when several dispatch at once'(stores) {
        const exporters = [await addExporter(stores), await addExporter(stores)];
        await publish(stores, ...Array(20).fill({}));
        const options = { window: 7, limit: 5 };
        const rounds = await inParallel(16, async () => {
            const before = await dispatchedIds(stores, options);
            // what goes before all that is known must not come on top of it
            await Promise.all(exporters.map(({ id }) => publishTest(stores, id)));
            return [...before, ...(await dispatchedIds(stores, options))];
        });
        const handed = [...rounds.flat(), ...(await dispatchedIds(stores, { window: 7 }))];
        const inFlight = await stores.deliveries.list({ state: 'queued', limit: 100 });
        assert.deepEqual(inFlight.map(({ id }) => id).sort(), handed.sort(), 'each delivery once');
        const perExporter = exporters.map(({ id }) => inFlight.filter(({ exporterId }) => exporterId === id).length);
        assert.deepEqual(perExporter, [7, 7]);
    },

    async 'empties a backlog when several dispatch and record at once'(stores) {
        await addExporter(stores);
        await addExporter(stores);
        const ids = await publish(stores, ...Array(30).fill({}));
        const lane = async (): Promise<number> => {
            let sent = 0;
            for (let turn = 0; turn < 500; turn++) {
                const claims = await claim(stores, await dispatchedIds(stores, { window: 3, limit: 4 }));
                const recorded = await stores.deliveries.recordOutcomes(claims.map((one) => success(one)));
                sent += recorded.filter(Boolean).length;
                if (claims.length === 0 && (await stores.deliveries.list({ state: 'pending', limit: 1 })).length === 0) {
                    return sent;
                }
            }
            assert.fail('The backlog is never empty');
        };
        const sent = await inParallel(5, lane);
        assert.equal(
            sent.reduce((sum, count) => sum + count),
            ids.length,
        );
    },

    async 'hands out single attempts first, whatever state the exporter is in'(stores) {
        const running = await addExporter(stores);
        const stopped = await addExporter(stores, { state: 'stopped' });
        const ordinary = only(await publish(stores));
        const tests = [
            await publishTest(stores, stopped.id, { createdAt: at(3) }),
            await publishTest(stores, running.id, { createdAt: at(4) }),
        ];
        assert.deepEqual(await dispatchedIds(stores, { now: at(5), limit: 2 }), tests);
        assert.deepEqual(await dispatchedIds(stores, { now: at(5), limit: 2 }), [ordinary]);
    },

    async 'counts single attempts in the window'(stores) {
        const { id } = await addExporter(stores);
        await publish(stores, {}, {});
        const tests = [await publishTest(stores, id), await publishTest(stores, id), await publishTest(stores, id)];
        assert.deepEqual(await dispatchedIds(stores, { window: 2 }), tests.slice(0, 2));
        assert.deepEqual(await dispatchedIds(stores, { window: 4 }), [
            tests[2],
            ...(await stores.deliveries.list({ limit: 5 })).slice(-1).map(({ id }) => id),
        ]);
    },

    async 'keeps back what a stopped exporter would receive'(stores) {
        const { id } = await addExporter(stores);
        const delivery = only(await publish(stores));
        await stores.exporters.update(id, { state: 'stopped' }, at(1));
        assert.deepEqual(await dispatchedIds(stores), []);
        await stores.exporters.update(id, { state: 'running' }, at(2));
        assert.deepEqual(await dispatchedIds(stores), [delivery]);
    },

    async 'hands out first tries before retries'(stores) {
        await addExporter(stores);
        const old = await publish(stores, {}, {});
        await failAll(stores);
        const fresh = await publish(stores, { createdAt: at(20) }, { createdAt: at(20) });
        assert.deepEqual(await dispatchedIds(stores, { now: at(99), window: 3 }), [...fresh, old[0]]);
    },

    async 'hands out older before newer'(stores) {
        await addExporter(stores);
        const [second, first] = await publish(stores, { createdAt: at(2) }, { createdAt: at(1) });
        const third = await publish(stores, { createdAt: at(2) }, { createdAt: at(2) }, { createdAt: at(2) });
        assert.deepEqual(await dispatchedIds(stores, { now: at(5), window: 4 }), [first, second, ...third.slice(0, 2)]);
    },

    async 'hands out no more than the limit, exporters in turn'(stores) {
        await addExporter(stores);
        await publish(stores, {}, {}, {}, {});
        await addExporter(stores);
        await publish(stores, { createdAt: at(1) });
        const handed = await dispatch(stores, { now: at(1), limit: 2 });
        const exporters = await Promise.all(handed.map(async ({ deliveryId }) => (await stores.deliveries.get(deliveryId))?.exporterId));
        assert.equal(handed.length, 2);
        assert.equal(new Set(exporters).size, 2);
    },

    async 'sends a failing exporter one probe, when it is due'(stores) {
        await addExporter(stores);
        await publish(stores, {}, {}, {}, {});
        await failAll(stores, { probeAt: at(500) });
        assert.deepEqual(await dispatchedIds(stores, { now: at(499), breakerAfter: 4 }), []);
        const probe = only(await dispatchedIds(stores, { now: at(500), breakerAfter: 4 }));
        assert.deepEqual(await dispatchedIds(stores, { now: at(999), breakerAfter: 4 }), [], 'one probe at a time');

        await stores.deliveries.recordOutcomes((await claim(stores, [probe])).map((one) => failure(one, at(510), { probeAt: at(900) })));
        assert.deepEqual(await dispatchedIds(stores, { now: at(899), breakerAfter: 4 }), []);
        const second = await claim(stores, await dispatchedIds(stores, { now: at(900), breakerAfter: 4 }));
        await stores.deliveries.recordOutcomes([success(only(second))]);
        assert.equal((await dispatchedIds(stores, { now: at(900), breakerAfter: 4 })).length, 3, 'delivered: the breaker is closed');
    },

    async 'keeps the window while failures are fewer than the breaker needs'(stores) {
        await addExporter(stores);
        await publish(stores, {}, {}, {});
        await failAll(stores, { probeAt: at(500) });
        assert.equal((await dispatchedIds(stores, { now: at(100), breakerAfter: 4 })).length, 3);
    },

    async 'hands out a test of a failing exporter before its probe is due'(stores) {
        const { id } = await addExporter(stores);
        await publish(stores, {}, {}, {});
        await failAll(stores, { probeAt: at(500) });
        const test = await publishTest(stores, id);
        assert.deepEqual(await dispatchedIds(stores, { now: at(100) }), [test]);
    },
};

/** Sends all that is due; everything fails and is due again after 10 ms. */
async function failAll(stores: WebhookStores, overrides: { readonly probeAt?: Date } = {}): Promise<void> {
    const claims = await claim(stores, await dispatchedIds(stores));
    await stores.deliveries.recordOutcomes(claims.map((one) => failure(one, at(10), overrides)));
}
