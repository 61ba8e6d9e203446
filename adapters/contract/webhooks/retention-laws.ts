import assert from 'node:assert/strict';
import { EVENT_MARGIN } from '../../../lib/webhooks/deliveries/retention.ts';
import type { NewEvent } from '../../../lib/webhooks/events/new-event.ts';
import { ids, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, forAll, sampleEvent, success, type WebhookBench } from './fixture.ts';

const DAY = 24 * 60 * 60_000;
const KEPT = 2 * DAY;

/** What is removed once it was kept long enough, and what stays. */
export const retentionLaws: Laws<WebhookBench> = {
    async 'begins a turn once in its time, whoever asks'(bench) {
        const { begin } = present(bench.deliveries.retention);
        const asked = [0, 0, DAY - 1, DAY, DAY, 2 * DAY - 1, 2 * DAY];
        const begun = [];
        for (const time of asked) {
            await bench.setTime(at(time));
            begun.push(await begin(DAY));
        }
        assert.deepEqual(begun, [true, false, false, true, false, false, true]);
    },

    async 'begins a turn where the last one began by a clock that was ahead'(bench) {
        const { begin } = present(bench.deliveries.retention);
        const begun = [];
        for (const time of [100 * DAY, DAY, DAY, 2 * DAY - 1, 2 * DAY]) {
            await bench.setTime(at(time));
            begun.push(await begin(DAY));
        }
        assert.deepEqual(begun, [true, true, false, false, true]);
    },

    async 'removes deliveries that ended long enough ago, with their attempts'(bench) {
        await bench.addExporter();
        const [early, late] = await bench.publish({}, {});
        await bench.record([success(only(await bench.claimDue({ limit: 1 })))], at(1_000));
        const [claimed] = await bench.claimDue({ now: at(1_000) });
        await bench.record([failure(present(claimed), 0, { next: { state: 'exhausted' } })], at(2_000));

        assert.deepEqual(await expire(bench, 1_000), { deliveries: 0, events: 0 });
        assert.deepEqual(await expire(bench, 1_001), { deliveries: 1, events: 0 });
        assert.equal(await bench.deliveries.get(present(early)), null);
        assert.deepEqual(await bench.deliveries.attempts(present(early)), []);
        await bench.assertDelivery(present(late), { state: 'exhausted' });
        assert.equal((await bench.deliveries.attempts(present(late))).length, 1);
        assert.deepEqual(await expire(bench, 2_001), { deliveries: 1, events: 0 });
        assert.deepEqual(await bench.listed(), []);
    },

    async 'keeps what has not ended, however old it is, with its event'(bench) {
        await bench.record([success(await bench.claimOne())]);
        const unended = await bench.publish({}, {}, {});
        await bench.claimDue({ limit: 1 });
        await bench.dispatch({ limit: 1 });

        assert.deepEqual(await expire(bench, 100 * DAY), { deliveries: 1, events: 1 });
        const left = await bench.listed();
        assert.deepEqual(
            left.map(({ id, state }) => [id, state]),
            ['pending', 'queued', 'sending'].map((state, index) => [unended[2 - index], state]),
        );
        for (const { eventId } of left) {
            assert.notEqual(await bench.deliveries.event(eventId), null);
        }
    },

    async 'keeps the event of what waits, also behind what a clock that was ahead accepted'(bench) {
        await bench.addExporter();
        await bench.publishAt(at(100 * DAY), {});
        await bench.publishAt(at(0), {});
        assert.deepEqual(await expire(bench, EVENT_MARGIN + 1), { deliveries: 0, events: 0 });
        assert.equal((await bench.claimDue({ now: at(KEPT + EVENT_MARGIN + 2) })).length, 1, 'it is sent');
    },

    async 'removes an event a day after its deliveries may go, unless one is left'(bench) {
        await bench.addExporter();
        await bench.addExporter({ createdAt: at(1) });
        const [one] = await bench.publish();
        const { eventId } = present(await bench.deliveries.get(present(one)));
        const claims = await bench.claimDue();
        await bench.record([success(present(claims[0]))]);
        assert.deepEqual(await expire(bench, EVENT_MARGIN + 1), { deliveries: 1, events: 0 });
        await bench.record([success(present(claims[1]))]);

        assert.deepEqual(await expire(bench, EVENT_MARGIN), { deliveries: 1, events: 0 });
        assert.notEqual(await bench.deliveries.event(eventId), null);
        assert.deepEqual(await expire(bench, EVENT_MARGIN + 1), { deliveries: 0, events: 1 });
        assert.equal(await bench.deliveries.event(eventId), null);
    },

    async 'removes an event that nobody wanted'(bench) {
        await bench.setTime(at(0));
        const { eventId } = only(await bench.deliveries.accept([forAll(sampleEvent())]));
        assert.deepEqual(await expire(bench, EVENT_MARGIN), { deliveries: 0, events: 0 });
        assert.deepEqual(await expire(bench, EVENT_MARGIN + 1), { deliveries: 0, events: 1 });
        assert.equal(await bench.deliveries.event(eventId), null);
    },
};

/** The same of keys of the caller's. */
export const retainedKeyLaws: Laws<WebhookBench> = {
    async 'frees the key of a removed event'(bench) {
        await bench.setTime(at(0));
        const idempotency = { key: 'order 7', digest: 'of its body' };
        const first = only(await bench.deliveries.accept([{ ...forAll(sampleEvent()), idempotency }]));
        await expire(bench, EVENT_MARGIN);
        assert.equal(only(await bench.deliveries.accept([{ ...forAll(sampleEvent()), idempotency }])).eventId, first.eventId);
        await expire(bench, EVENT_MARGIN + 1);
        const other = { ...idempotency, digest: 'of another' };
        assert.notEqual(only(await bench.deliveries.accept([{ ...forAll(sampleEvent()), idempotency: other }])).eventId, first.eventId);
    },

    async 'answers a repeated key as before when the deliveries of its event are gone'(bench) {
        await bench.addExporter();
        await bench.addExporter();
        await bench.setTime(at(0));
        const keyed = (digest: string): NewEvent => ({ ...forAll(sampleEvent()), idempotency: { key: 'order 7', digest } });
        const { eventId, deliveries } = only(await bench.deliveries.accept([keyed('of its body')]));
        await bench.record((await bench.claimDue()).map((claim) => success(claim)));
        assert.deepEqual(await expire(bench, EVENT_MARGIN), { deliveries: 2, events: 0 });

        const before = { eventId, deliveries, handedOut: [], leftFor: [] };
        assert.deepEqual(await bench.deliveries.accept([keyed('of its body')]), [before]);
        assert.deepEqual(await bench.listed(), []);
        const [beside, again] = await bench.deliveries.accept([forAll(sampleEvent()), keyed('of its body')]);
        assert.deepEqual(again, before);
        await assert.rejects(bench.deliveries.accept([keyed('of another')]), { code: 'CONFLICT', field: 'idempotencyKey' });
        assert.deepEqual(ids(await bench.listed()), present(beside).deliveries.toReversed());

        assert.deepEqual(await expire(bench, EVENT_MARGIN + 1), { deliveries: 0, events: 1 });
        const next = only(await bench.deliveries.accept([keyed('of another')]));
        assert.notEqual(next.eventId, eventId);
        assert.equal(next.deliveries.length, 2);
    },
};

/** The same of what is held. */
export const retainedHeldLaws: Laws<WebhookBench> = {
    async 'removes held deliveries of events from long enough ago'(bench) {
        await bench.addExporter({ state: 'stopped', stopReason: 'It is gone' });
        const [held] = await bench.publish();
        assert.deepEqual(await expire(bench, -1), { deliveries: 0, events: 0 });
        await bench.assertDelivery(present(held), { state: 'held' });
        assert.deepEqual(await expire(bench, 1), { deliveries: 1, events: 0 });
    },
};

/** The same where there are replays. */
export const retainedReplayLaws: Laws<WebhookBench> = {
    async 'goes on to number and to replay what comes after'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish({}, {}, {});
        await bench.record((await bench.claimDue()).map((claim) => success(claim)));
        await expire(bench, 1_000);
        const later = KEPT + 2_000;
        const [failed, next] = await bench.publishAt(at(later), {}, {});
        assert.deepEqual(
            (await bench.listed()).map((one) => one.id),
            [next, failed],
        );
        const [claimed] = await bench.claimDue({ now: at(later), limit: 1 });
        await bench.record([failure(present(claimed), 0, { next: { state: 'exhausted' } })], at(later));
        const replays = present(bench.deliveries.replays);
        await replays.plan({ id: sampleEvent().id, exporterId: id, failedSince: at(0), rate: 10 });
        await replays.advance(100);
        await bench.assertDelivery(present(failed), { state: 'pending' });
    },

    async 'removes replays that ended long enough ago, and no other'(bench) {
        const { id: exporterId } = await bench.addExporter();
        await bench.publish({}, {});
        await bench.record((await bench.claimDue()).map((claim) => failure(claim, 0, { next: { state: 'exhausted' } })));
        const { plan, cancel, advance, list } = present(bench.deliveries.replays);
        const planned = [];
        for (const _ of ['cancelled', 'done']) {
            planned.push((await plan({ id: sampleEvent().id, exporterId, failedSince: at(0), rate: 100 })).id);
        }
        const [cancelled, done] = planned as [string, string];
        await bench.setTime(at(1_000));
        await cancel(cancelled);
        await bench.setTime(at(60_000));
        assert.equal(await advance(100), false);
        const unended = (await plan({ id: sampleEvent().id, exporterId, failedSince: at(0), rate: 1 })).id;
        const leftAfter = async (milliseconds: number): Promise<readonly string[]> => {
            await expire(bench, milliseconds);
            return ids(await list(9));
        };
        assert.deepEqual(await leftAfter(1_000), [unended, done, cancelled]);
        assert.deepEqual(await leftAfter(1_001), [unended, done]);
        assert.deepEqual(await leftAfter(100 * DAY), [unended], 'one that has not ended stays');
        await assert.rejects(cancel(done), { code: 'NOT_FOUND' });
    },
};

/** Takes a turn so many milliseconds after what was kept long enough then was a law's beginning. */
async function expire(bench: WebhookBench, after: number): Promise<{ deliveries: number; events: number }> {
    await bench.setTime(at(KEPT + after));
    const total = { deliveries: 0, events: 0 };
    for await (const { deliveries, events } of present(bench.deliveries.retention).expire(KEPT)) {
        total.deliveries += deliveries;
        total.events += events;
    }
    return total;
}
