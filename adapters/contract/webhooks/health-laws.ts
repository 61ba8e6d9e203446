import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Overview } from '../../../lib/webhooks/exporters/exporter-health.ts';
import { assertFields, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, sampleOutcome, success, type WebhookBench } from './fixture.ts';
import { accept, addOrdered } from './ordering-laws.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** More than a store that takes care of others lets go with one statement. */
const MANY = 250;

/** How an exporter fares, as the store tells. */
export const healthLaws: Laws<WebhookBench> = {
    async 'tells how an exporter fares that has had nothing to do'(bench) {
        const { id } = await bench.addExporter();
        await bench.setTime(at(7));
        assert.deepEqual(await bench.exporters.health(id), {
            at: at(7),
            breaker: 'closed',
            failingSince: null,
            nextProbe: null,
            pausedUntil: null,
            lastOutcome: null,
            inFlight: 0,
            backlog: { waiting: 0, more: false, oldest: null, ages: { minute: 0, tenMinutes: 0, hour: 0, day: 0, older: 0 } },
        });
        assert.equal(await bench.exporters.health(randomUUID()), null);
        assert.equal(await bench.exporters.health('no-uuid'), null);
    },

    async 'tells since when an exporter fails and when it is probed'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish({}, {}, {});
        await bench.failInTurn(2, 100);
        assertFields(await bench.exporters.health(id), { breaker: 'closed', failingSince: at(105), nextProbe: null });
        await bench.failInTurn(1, 200);
        assertFields(await bench.exporters.health(id), { breaker: 'open', failingSince: at(105), nextProbe: at(1205) });
        const [probe] = await bench.claimDue({ now: at(1300) });
        await bench.record([success(present(probe))], at(1301));
        assertFields(await bench.exporters.health(id), { breaker: 'recovering', failingSince: null, nextProbe: null });
    },

    async 'tells until when an exporter wants to be left alone'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish({});
        const [claimed] = await bench.claimDue();
        await bench.record([failure(present(claimed), 0, { health: 'none', pause: 500 })], at(100));
        assertFields(await bench.exporters.health(id), {
            breaker: 'paused',
            failingSince: at(100),
            pausedUntil: at(600),
            nextProbe: at(600),
        });
    },

    async 'tells the last outcome, tests and faults of ours aside'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish({}, {}, {});
        const [first, second, third] = await bench.claimDue();
        await bench.record([success(present(first))], at(100));
        const delivered = { code: 'delivered', detail: 'it was delivered', at: at(100) } as const;
        assertFields(await bench.exporters.health(id), { lastOutcome: delivered });
        const outcome = sampleOutcome('interrupted');
        await bench.record([failure(present(second), 0, { outcome, health: 'none' })], at(1500));
        assertFields(await bench.exporters.health(id), { lastOutcome: delivered });
        await bench.record([failure(present(third), 0)], at(1600));
        const refused = { code: 'connect_refused', detail: 'it was connect_refused', at: at(1600) } as const;
        assertFields(await bench.exporters.health(id), { lastOutcome: refused });
        const [again] = await bench.claimDue({ now: at(4000), limit: 1 });
        await bench.record([success(present(again))], at(4000));
        assertFields(await bench.exporters.health(id), { lastOutcome: { ...delivered, at: at(4000) } });
    },

    async 'counts what waits by age, and what is in flight'(bench) {
        const { id } = await bench.addExporter();
        await bench.addExporter({ state: 'stopped' });
        await bench.publish({}, {}, {});
        // a retry is as old as its event, whenever it is due
        await bench.record([failure(present((await bench.claimDue({ window: 1 }))[0]), 26 * HOUR)], at(50));
        await bench.publishAt(at(24 * HOUR));
        await bench.publishAt(at(25 * HOUR - 10 * MINUTE), {}, {});
        await bench.publishAt(at(25 * HOUR - MINUTE));
        await bench.publishAt(at(25 * HOUR));
        await bench.publishTest(id, at(25 * HOUR));
        await bench.dispatch({ now: at(25 * HOUR), window: 2 });
        const health = present(await bench.exporters.health(id));
        assertFields(health, { inFlight: 1 });
        assert.deepEqual(health.backlog, {
            waiting: 7,
            more: false,
            oldest: at(0),
            ages: { minute: 1, tenMinutes: 1, hour: 2, day: 1, older: 2 },
        });
    },
};

/** The same of exporters that are ordered. */
export const orderedHealthLaws: Laws<WebhookBench> = {
    async 'counts by age what waits for another of its order key'(bench) {
        const { id } = await addOrdered(bench, { afterExhausted: 'hold' });
        await accept(bench, ['a', 'a', 'a']);
        const head = only(await bench.claimDue());
        await bench.setTime(at(25 * MINUTE));
        await accept(bench, ['a', 'a']);
        await bench.record([failure(head, HOUR)], at(30 * MINUTE));
        assert.deepEqual(await bench.dispatchedIds({ now: at(30 * MINUTE) }), [], 'looked through once');
        assert.deepEqual(present(await bench.exporters.health(id)).backlog, {
            waiting: 5,
            more: false,
            oldest: at(0),
            ages: { minute: 0, tenMinutes: 2, hour: 3, day: 0, older: 0 },
        });

        const again = only(await bench.claimDue({ now: at(2 * HOUR) }));
        await bench.record([failure(again, 0, { next: { state: 'exhausted' } })], at(2 * HOUR));
        assert.deepEqual(await bench.dispatchedIds({ now: at(2 * HOUR) }), [], 'the first holds them');
        assert.deepEqual(present(await bench.exporters.health(id)).backlog, {
            waiting: 4,
            more: false,
            oldest: at(0),
            ages: { minute: 0, tenMinutes: 0, hour: 0, day: 4, older: 0 },
        });
    },

    async 'counts all that waited while an exporter that is not ordered any more lets it go'(bench) {
        const { id } = await addOrdered(bench);
        await accept(bench, Array(MANY).fill('a'));
        assert.equal((await bench.dispatchedIds({ window: 2 * MANY })).length, 1, 'looked through once');
        await bench.update(id, { ordered: false }, at(10));
        for (let now = 10; now < 15; now += 1) {
            assertFields(present(await bench.exporters.health(id)).backlog, { waiting: MANY - 1, more: false });
            assert.deepEqual(await bench.dispatchedIds({ now: at(now), window: 1 }), [], 'there is no room');
        }
    },

    async 'counts a retry that waits for one that was replayed as old as its event'(bench) {
        const { id } = await addOrdered(bench);
        const [first, second] = await accept(bench, ['a', 'a']);
        await bench.record([failure(only(await bench.claimDue()), 0, { next: { state: 'exhausted' } })], at(10));
        const retried = only(await bench.claimDue({ now: at(20) }));
        assert.equal(retried.deliveryId, second);
        await bench.record([failure(retried, 1_000)], at(20));
        await bench.replay(present(first), at(30));
        assert.deepEqual(await bench.dispatchedIds({ now: at(30) }), [first]);
        assert.deepEqual(await bench.dispatchedIds({ now: at(HOUR) }), [], 'it is due, and another of its key is in flight');
        assert.deepEqual(present(await bench.exporters.health(id)).backlog, {
            waiting: 1,
            more: false,
            oldest: at(0),
            ages: { minute: 0, tenMinutes: 0, hour: 0, day: 1, older: 0 },
        });
    },
};

async function overview({ exporters }: WebhookBench, limit: number): Promise<Overview> {
    return present(await exporters.overview?.(limit), 'the overview');
}

/** What a store counts over all exporters. */
export const overviewLaws: Laws<WebhookBench> = {
    async 'counts active deliveries, by state'(bench) {
        const limit = 100;
        const none = await overview(bench, limit);
        assert.deepEqual(none.deliveries, { pending: 0, queued: 0, sending: 0 });
        await bench.addExporter();
        await bench.publish({}, {}, {}, {}, {}, {}, {});
        const [first, second] = await bench.dispatchedIds({ limit: 4 });
        const [done] = await bench.claim([present(first), present(second)]);
        await bench.record([success(present(done))]);
        const { deliveries } = await overview(bench, limit);
        assert.deepEqual(deliveries, { pending: 3, queued: 2, sending: 1 });
        assert.equal((await overview(bench, 2)).deliveries.pending, 2);
    },

    async 'counts exporters by the state of their breaker'(bench) {
        await bench.addExporter({ state: 'stopped' });
        await bench.addExporter({ state: 'stopped' });
        const failing = await bench.addExporter({ collector: 'failing' });
        await bench.publish({}, {}, {});
        const { exporters: well } = await overview(bench, 1);
        assert.deepEqual(well, { stopped: 2, closed: 1, open: 0, paused: 0, recovering: 0 });
        await bench.failInTurn(3, 100);
        assertFields(await bench.exporters.health(failing.id), { breaker: 'open' });
        const { exporters } = await overview(bench, 1);
        assert.deepEqual(exporters, { stopped: 2, closed: 0, open: 1, paused: 0, recovering: 0 });
    },
};
