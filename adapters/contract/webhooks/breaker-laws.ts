import assert from 'node:assert/strict';
import { STOPPED_FAILING } from '../../../lib/webhooks/outcomes/breaker.ts';
import { assertFields, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, RULES, success, type WebhookBench } from './fixture.ts';

const HOUR = 3_600_000;

/** When an exporter that fails, or asks to be left alone, is sent to again. */
export const breakerLaws: Laws<WebhookBench> = {
    async 'sends a failing exporter one probe, when it is due, each time later'(bench) {
        await bench.addExporter();
        await bench.publish({}, {}, {}, {});
        await bench.failInTurn(3, 100);
        for (const [failed, due] of [
            [125, 1125],
            [2000, 4000],
            [5000, 9000],
            [10_000, 14_000],
        ] as const) {
            assert.deepEqual(await bench.dispatchedIds({ now: at(due - 1) }), [], `failed at ${failed}`);
            const probe = only(await bench.claimDue({ now: at(due) }));
            assert.deepEqual(await bench.dispatchedIds({ now: at(due + 1) }), [], 'one probe at a time');
            const next = { 1125: 2000, 4000: 5000, 9000: 10_000, 14000: 15_000 }[due];
            await bench.record([failure(probe, 0)], at(next));
        }
    },

    async 'counts failures of attempts that began before the last one counted as one'(bench) {
        await bench.addExporter();
        const published = await bench.publish(...Array(8).fill({}));
        const claims = await bench.claimDue();
        for (const [index, one] of claims.entries()) {
            await bench.record([failure(one, 0)], at(10 + index));
        }
        const { exporterId } = present((await bench.listed())[0]);
        assert.equal((await bench.exporters.get(exporterId))?.consecutiveFailures, 1);
        assert.equal((await bench.dispatchedIds({ now: at(100) })).length, published.length, 'the breaker is closed');
    },

    async 'counts no failure of an attempt that was handed out before the breaker opened'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish(...Array(5).fill({}));
        const queued = await bench.dispatchedIds();
        for (const [index, one] of queued.entries()) {
            const [claimed] = await bench.claim([one], at(100 + 10 * index));
            await bench.record([failure(present(claimed), HOUR)], at(105 + 10 * index));
        }
        assert.equal((await bench.exporters.get(id))?.consecutiveFailures, 3);
        await bench.publishAt(at(200), {});
        assert.deepEqual(await bench.dispatchedIds({ now: at(1124) }), []);
        only(await bench.dispatchedIds({ now: at(1125) }));
    },

    async 'opens the window step by step after a probe was delivered, also to what waits for a retry'(bench) {
        await bench.addExporter();
        await bench.publish(...Array(12).fill({}));
        await bench.record(
            (await bench.claimDue({ window: 8 })).map((one) => failure(one, HOUR)),
            at(10),
        );
        await bench.failInTurn(2, 100);
        const probe = only(await bench.claimDue({ now: at(2000) }));
        await bench.record([success(probe)], at(2001));
        const second = await bench.claimDue({ now: at(2002) });
        assert.equal(second.length, 2);
        await bench.record(
            second.map((one) => success(one)),
            at(2003),
        );
        const third = await bench.claimDue({ now: at(2004) });
        assert.equal(third.length, 4);
        await bench.record(
            third.map((one) => success(one)),
            at(2005),
        );
        assert.equal((await bench.dispatchedIds({ now: at(2006) })).length, 12 - 1 - 2 - 4);
    },

    async 'opens the breaker again at the first failure in a slow start'(bench) {
        await bench.addExporter();
        await bench.publish(...Array(6).fill({}));
        await bench.failInTurn(3, 100);
        await bench.record([success(only(await bench.claimDue({ now: at(1200) })))], at(1201));
        const second = await bench.claimDue({ now: at(1202) });
        await bench.record([failure(present(second[0]), HOUR), success(present(second[1]))].slice(0, 1), at(1203));
        assert.deepEqual(await bench.dispatchedIds({ now: at(2202) }), []);
    },

    async 'leaves an exporter alone that asks for it, then probes it'(bench) {
        const { id } = await bench.addExporter();
        await bench.addExporter({ createdAt: at(1) });
        await bench.publish({}, {}, {});
        const [first, second] = (await bench.claimDue({ window: 2 })).filter(({ exporter }) => exporter.id === id);
        const asks = { health: 'none', pause: 500 } as const;
        await bench.record([failure(present(first), 0, asks), failure(present(second), 0, { ...asks, pause: 100 })], at(100));
        const handed = await bench.dispatch({ now: at(599) });
        assert.ok(handed.length > 0, 'others go on');
        const deliveries = await Promise.all(handed.map(({ deliveryId }) => bench.deliveries.get(deliveryId)));
        assert.ok(deliveries.every((delivery) => delivery?.exporterId !== id));

        const probe = only(await bench.claimDue({ now: at(600) }));
        assert.equal(probe.exporter.id, id);
        assert.deepEqual(await bench.dispatchedIds({ now: at(601) }), [], 'one probe at a time');
        await bench.record([success(probe)], at(602));
        assert.equal((await bench.dispatchedIds({ now: at(603) })).length, 2);
        assert.equal((await bench.exporters.get(id))?.consecutiveFailures, 0, 'no failure');
    },

    async 'stops an exporter that has asked to be left alone for too long and has taken nothing'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish({}, {}, {}, {});
        const asks = { health: 'none', pause: 500 } as const;
        const { stopAfter } = RULES;
        await bench.record([failure(only(await bench.claimDue({ window: 1 })), HOUR, asks)], at(100));
        await bench.record([failure(only(await bench.claimDue({ now: at(600) })), HOUR, asks)], at(99 + stopAfter));
        assert.equal((await bench.exporters.get(id))?.state, 'running');
        const late = at(100 + stopAfter + 500);
        await bench.record([failure(only(await bench.claimDue({ now: late })), HOUR, asks)], late);
        assertFields(await bench.exporters.get(id), { state: 'stopped', stopReason: STOPPED_FAILING, consecutiveFailures: 0 });
    },

    async 'stops no exporter that asks to be left alone and has taken something between'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish({}, {}, {}, {});
        const asks = { health: 'none', pause: 500 } as const;
        const { stopAfter } = RULES;
        await bench.record([failure(only(await bench.claimDue({ window: 1 })), HOUR, asks)], at(100));
        await bench.record([success(only(await bench.claimDue({ now: at(600) })))], at(700));
        const late = at(100 + stopAfter);
        const [next] = await bench.claimDue({ now: late });
        await bench.record([failure(present(next), HOUR, asks)], late);
        assertFields(await bench.exporters.get(id), { state: 'running', stopReason: null });
    },

    async 'leaves an exporter alone for as long as it asks, whatever attempts that began before come to'(bench) {
        await bench.addExporter();
        await bench.publish({}, {}, {});
        const [first, second] = await bench.claimDue({ window: 2 });
        await bench.record([failure(present(first), 0, { health: 'none', pause: 500 }), success(present(second))], at(100));
        assert.deepEqual(await bench.dispatchedIds({ now: at(599) }), []);
        assert.equal((await bench.dispatchedIds({ now: at(600) })).length, 1);
    },

    async 'opens the breaker when the probe after a pause fails'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish({}, {}, {}, {});
        const [asks, other] = await bench.claimDue({ window: 2 });
        await bench.record([failure(present(asks), 0, { health: 'none', pause: 500 })], at(100));
        await bench.record([failure(present(other), 0)], at(110));
        await bench.setTime(at(110));
        assert.equal((await bench.exporters.get(id))?.consecutiveFailures, 1, 'one that began before is a failure like others');
        await bench.record([failure(only(await bench.claimDue({ now: at(600) })), 0)], at(601));
        assert.deepEqual(await bench.dispatchedIds({ now: at(1600) }), []);

        await bench.record([failure(only(await bench.claimDue({ now: at(1601) })), 0)], at(1700));
        assert.deepEqual(await bench.dispatchedIds({ now: at(3699) }), [], 'each time later');
        await bench.record([success(only(await bench.claimDue({ now: at(3700) })))], at(3701));
        assert.equal((await bench.dispatchedIds({ now: at(3702) })).length, 2, 'recovers as from any failure');
    },

    async 'keeps the window while failures are fewer than the breaker needs'(bench) {
        await bench.addExporter();
        await bench.publish({}, {}, {});
        await bench.failInTurn(2, 100);
        assert.equal((await bench.dispatchedIds({ now: at(200) })).length, 3);
    },

    async 'hands out a test of a failing exporter before its probe is due'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish({}, {}, {});
        await bench.failInTurn(3, 100);
        const test = await bench.publishTest(id, at(200));
        assert.deepEqual(await bench.dispatchedIds({ now: at(200) }), [test]);
    },
};
