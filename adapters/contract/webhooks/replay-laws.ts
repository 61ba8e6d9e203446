import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Claim } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { Replay, ReplayStore } from '../../../lib/webhooks/deliveries/replays.ts';
import type { FormattedMessage } from '../../../lib/webhooks/messages/formatted-message.ts';
import type { NextState } from '../../../lib/webhooks/outcomes/retry-schedule.ts';
import { assertFields, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, sampleEvent, success, type WebhookBench } from './fixture.ts';

/** Replays of many deliveries. */
export const replayLaws: Laws<WebhookBench> = {
    async 'replays what was sent in vain since a time, and nothing else'(bench) {
        const { id } = await bench.addExporter();
        await fail(bench, 2, at(100));
        const exhausted = await fail(bench, 2, at(1_000));
        const waiting = await fail(bench, 1, at(1_100), { state: 'pending', delay: 3_600_000 });
        await bench.publishAt(at(1_200), {});
        await bench.record([success(only(await bench.claimDue({ now: at(1_200) })))], at(1_201));
        const other = await bench.addExporter({ createdAt: at(1) });
        await fail(bench, 1, at(1_300), { state: 'exhausted' }, other.id);

        await bench.setTime(at(5_000));
        const store = storeOf(bench);
        assert.equal(await store.count({ exporterId: id, failedSince: at(500) }), 3);
        const planned = await plan(bench, id, { failedSince: at(500), rate: 100 });
        const row = { exporterId: id, failedSince: at(500), rate: 100, total: 3, done: 0, state: 'running', createdAt: at(5_000) };
        assertFields(planned, { ...row, finishedAt: null } as Partial<Replay>);
        assert.deepEqual(await store.list(9), [planned]);

        assert.equal(await store.advance(100), false);
        assertFields(only(await store.list(9)), { done: 3, state: 'done', finishedAt: at(5_000) });
        const again = await bench.claimDue({ now: at(5_000) });
        assert.deepEqual(new Set(again.map(({ deliveryId }) => deliveryId)), new Set([...exhausted, ...waiting]));
        assert.ok(again.every(({ attempt, attemptSinceReplay }) => attempt === 2 && attemptSinceReplay === 1));
    },

    async 'replays no faster than its rate, and at most so many at once'(bench) {
        const { id } = await bench.addExporter();
        await fail(bench, 15, at(0));
        await bench.setTime(at(5_000));
        const store = storeOf(bench);
        const { id: replayId } = await plan(bench, id, { rate: 4 });
        const doneAt = async (milliseconds: number, limit = 100): Promise<number> => {
            await bench.setTime(at(milliseconds));
            assert.equal(await store.advance(limit), milliseconds < 61_000, String(milliseconds));
            return present((await store.list(9)).find((one) => one.id === replayId)).done;
        };
        assert.deepEqual(
            [
                await doneAt(5_000),
                await doneAt(5_200),
                await doneAt(5_500),
                await doneAt(6_000, 1),
                await doneAt(7_000),
                await doneAt(60_000),
                await doneAt(61_000),
            ],
            [1, 1, 3, 4, 8, 12, 15],
        );
    },

    async 'begins with a tenth of a second of its rate, or with one'(bench) {
        const { id } = await bench.addExporter();
        await fail(bench, 100, at(0));
        await bench.setTime(at(5_000));
        const store = storeOf(bench);
        for (const [rate, first] of [
            [100, 10],
            [400, 40],
            [3, 1],
        ] as const) {
            const planned = await plan(bench, id, { rate });
            assert.equal(await store.advance(1_000), true);
            assertFields(present((await store.list(9)).find((one) => one.id === planned.id)), { done: first, state: 'running' });
            await store.cancel(planned.id);
        }
    },

    async 'replays behind what is tried for the first time, and nothing twice'(bench) {
        const { id } = await bench.addExporter();
        await fail(bench, 2, at(0));
        await fail(bench, 1, at(0), { state: 'pending', delay: 3_600_000 });
        await bench.setTime(at(5_000));
        await plan(bench, id, { rate: 100 });
        assert.equal(await storeOf(bench).advance(100), false);
        assert.equal(await storeOf(bench).count({ exporterId: id, failedSince: at(0) }), 0, 'what waits for its turn is found no more');
        const first = await bench.publishAt(at(6_000), {}, {});
        const handedOut = await bench.dispatchedIds({ now: at(6_000), window: 3 });
        assert.equal(handedOut.length, 3);
        assert.ok(first.every((one) => handedOut.includes(one)));
        const health = present(await bench.exporters.health(id));
        assert.equal(health.backlog.oldest?.getTime(), at(5_000).getTime(), 'it waits since it was replayed');
    },

    async 'replays nothing that is sent in vain once more, and nothing that was accepted later'(bench) {
        const { id } = await bench.addExporter();
        const [first, second] = await fail(bench, 2, at(0));
        const [waits] = await fail(bench, 1, at(100), { state: 'pending', delay: 60_000 });
        await bench.setTime(at(5_000));
        await plan(bench, id, { rate: 1 });
        const later = await fail(bench, 1, at(5_010));
        for (const [index, expected] of [first, second, waits].entries()) {
            const now = at(10_000 * (index + 1));
            await bench.setTime(now);
            assert.equal(await storeOf(bench).advance(1), true);
            const again = only(await bench.claimDue({ now }));
            assert.equal(again.deliveryId, expected);
            await bench.record([failure(again, 600_000, index === 0 ? { next: { state: 'exhausted' } } : {})], now);
        }
        await bench.setTime(at(50_000));
        assert.equal(await storeOf(bench).advance(9), false);
        assertFields(only(await storeOf(bench).list(9)), { done: 3, total: 3 });
        await bench.assertDelivery(present(later[0]), { state: 'exhausted' });
    },

    async 'replays nothing that fails after it was planned, for good or not, and never passes its total'(bench) {
        const { id } = await bench.addExporter();
        const waiting = await fail(bench, 4, at(0), { state: 'pending', delay: 600_000 });
        await bench.publishAt(at(200), {}, {});
        const [retried, ended] = await bench.claimDue({ now: at(200) });
        await bench.setTime(at(5_000));
        await plan(bench, id, { rate: 1 });
        const inVain = { next: { state: 'exhausted' }, health: 'none' } as const;
        await bench.record([failure(present(retried), 600_000, { health: 'none' }), failure(present(ended), 0, inVain)], at(6_000));

        const replayed: string[] = [];
        for (const done of [1, 2, 3, 4]) {
            const now = at(10_000 * done);
            await bench.setTime(now);
            assert.equal(await storeOf(bench).advance(1), true);
            assertFields(only(await storeOf(bench).list(9)), { done, total: 4 });
            const again = only(await bench.claimDue({ now }));
            replayed.push(again.deliveryId);
            await bench.record([failure(again, 0, inVain)], now);
        }
        assert.deepEqual(replayed.toSorted(), waiting.toSorted());
        await bench.setTime(at(50_000));
        assert.equal(await storeOf(bench).advance(9), false);
        assertFields(only(await storeOf(bench).list(9)), { done: 4, total: 4, state: 'done' });
        await bench.assertDelivery(present(retried).deliveryId, { state: 'pending', attempts: 1 });
        await bench.assertDelivery(present(ended).deliveryId, { state: 'exhausted', attempts: 1 });
    },

    async 'replays nothing more once it is cancelled'(bench) {
        const { id } = await bench.addExporter();
        await fail(bench, 4, at(0));
        await bench.setTime(at(5_000));
        const replay = await plan(bench, id, { rate: 20 });
        const store = storeOf(bench);
        assert.equal(await store.advance(100), true);
        const cancelled = { ...replay, done: 2, state: 'cancelled', finishedAt: at(5_000) };
        assert.deepEqual(await store.cancel(replay.id), cancelled);
        await bench.setTime(at(9_000));
        assert.equal(await store.advance(100), false);
        assert.deepEqual(await store.cancel(replay.id), cancelled, 'once more changes nothing');
        assert.deepEqual(await store.list(9), [cancelled]);
        for (const unknown of [randomUUID(), 'no-uuid']) {
            await assert.rejects(store.cancel(unknown), { code: 'NOT_FOUND' });
        }
    },

    async 'lists those that run, however many have begun since'(bench) {
        const { id } = await bench.addExporter();
        await fail(bench, 4, at(0));
        await bench.setTime(at(5_000));
        const store = storeOf(bench);
        const ended = await store.cancel((await plan(bench, id, {})).id);
        const running = await plan(bench, id, { rate: 1 });
        const since = [];
        for (let times = 0; times < 3; times += 1) {
            since.unshift(await store.cancel((await plan(bench, id, {})).id));
        }
        assert.deepEqual(await store.list(2), [since[0], since[1], running]);
        assert.deepEqual(await store.list(4), [...since, running]);
        assert.deepEqual(await store.list(9), [...since, running, ended]);
    },

    async 'finds a replay by its id, also one that has ended'(bench) {
        const { id } = await bench.addExporter();
        await bench.setTime(at(5_000));
        const store = storeOf(bench);
        const first = await plan(bench, id, {});
        const second = await plan(bench, id, {});
        assert.deepEqual(await store.get(first.id), first);
        const cancelled = await store.cancel(first.id);
        assert.deepEqual(await store.get(first.id), cancelled);
        assert.deepEqual(await store.get(second.id), second);
        for (const unknown of [randomUUID(), 'no-uuid']) {
            await assert.rejects(store.get(unknown), { code: 'NOT_FOUND' });
        }
    },

    async 'replays nothing for an exporter that was removed, and no event that was erased'(bench) {
        const removed = await bench.addExporter();
        await fail(bench, 1, at(0));
        await bench.setTime(at(5_000));
        await plan(bench, removed.id, {});
        await bench.remove(removed.id, at(5_001));
        assert.equal(await storeOf(bench).advance(9), false);
        assertFields(only(await storeOf(bench).list(9)), { state: 'cancelled', done: 0 });
        for (const unknown of [removed.id, 'no-uuid']) {
            await assert.rejects(plan(bench, unknown, {}), { code: 'NOT_FOUND' });
            await assert.rejects(storeOf(bench).count({ exporterId: unknown, failedSince: at(0) }), { code: 'NOT_FOUND' });
        }

        const { id } = await bench.addExporter();
        const [erased] = await fail(bench, 1, at(6_000));
        await bench.deliveries.erase(present(await bench.deliveries.get(present(erased))).eventId);
        assert.equal(await storeOf(bench).count({ exporterId: id, failedSince: at(0) }), 0);
    },

    async 'replays each delivery once, however many advance it'(bench) {
        const { id } = await bench.addExporter();
        await fail(bench, 6, at(0));
        await bench.setTime(at(5_000));
        await plan(bench, id, { rate: 100 });
        await Promise.all([1, 2, 3, 4].map(() => storeOf(bench).advance(4)));
        await storeOf(bench).advance(100);
        assertFields(only(await storeOf(bench).list(9)), { done: 6, state: 'done' });
    },
};

/** The same of what is held. */
export const heldReplayLaws: Laws<WebhookBench> = {
    async 'replays what was held in the order of its acceptance, and nothing that is held later'(bench) {
        const { id } = await bench.addExporter();
        const gap = { failedSince: null, rate: 20 };
        const stops = { next: { state: 'exhausted' }, stopReason: 'It is gone' } as const;
        await bench.publish({});
        await bench.record([failure(only(await bench.claimDue()), 0, stops)], at(10));
        const [first, second, third] = await bench.publishAt(at(100), {}, {}, {});
        await bench.setTime(at(5_000));
        const store = storeOf(bench);
        assert.equal(await store.count({ exporterId: id, failedSince: null }), 3);
        assertFields(await plan(bench, id, gap), { failedSince: null, total: 3, rate: 20 });
        const [later] = await bench.publishAt(at(5_010), {});
        await bench.exporters.update(id, { state: 'running', stopReason: null });

        assert.equal(await store.advance(100), true);
        const claims = await bench.claimDue({ now: at(5_010) });
        assert.deepEqual(
            claims.map(({ deliveryId }) => deliveryId),
            [first, second],
        );
        await bench.setTime(at(8_000));
        assert.equal(await store.advance(100), false);
        assert.deepEqual(await bench.dispatchedIds({ now: at(8_000) }), [third]);
        assertFields(only(await store.list(9)), { done: 3, state: 'done' });
        await bench.assertDelivery(present(later), { state: 'held' });
    },
};

/** Of what an exporter sends in a format of its own. */
export const replayedMessageLaws: Laws<WebhookBench> = {
    async 'replays the bytes that were sent first, whatever format the exporter has by then'(bench) {
        const { id } = await bench.addExporter({ format: 'slack', kinds: ['*'] });
        const message: FormattedMessage = {
            contentType: 'application/json; charset=UTF-8',
            headers: [['X-Of-The-Format', 'as it was']],
            body: '{"text":"\\u00fc \u00fc","n":1.0,  "n":1}',
            failure: null,
        };
        const event = sampleEvent({ body: '{ "title":"\\u00fc \u00fc", "n":1.0 }' });
        await bench.setTime(at(0));
        await bench.deliveries.accept([{ event, recipients: { types: [], subscribers: [{ exporterId: id, message }] } }]);
        const sentOf = ({ event: { id, kind, body }, message }: Claim) => ({ id, kind, body, message });
        const first = only(await bench.claimDue());
        const sent = { ...event, body: '', message };
        assert.deepEqual(sentOf(first), sent);
        await bench.record([failure(first, 0, { next: { state: 'exhausted' }, health: 'none' })]);

        for (const [index, replay] of [
            () => bench.replay(first.deliveryId, at(20_000)),
            async () => {
                await plan(bench, id, { rate: 100 });
                await storeOf(bench).advance(100);
            },
        ].entries()) {
            const now = at(20_000 * (index + 1));
            await bench.update(id, index === 0 ? { format: 'native' } : { format: 'template', template: { text: 'new' } }, now);
            await replay();
            const again = only(await bench.claimDue({ now }));
            assert.deepEqual(sentOf(again), sent);
            assert.equal(again.deliveryId, first.deliveryId);
            await bench.record([failure(again, 0, { next: { state: 'exhausted' }, health: 'none' })], now);
        }
    },
};

function storeOf({ deliveries }: WebhookBench): ReplayStore {
    return present(deliveries.replays, 'replays');
}

async function plan(
    bench: WebhookBench,
    exporterId: string,
    { failedSince = at(0), rate = 10 }: Partial<Pick<Replay, 'failedSince' | 'rate'>>,
): Promise<Replay> {
    return await storeOf(bench).plan({ id: randomUUID(), exporterId, failedSince, rate });
}

/** Accepts so many events at a time, the deliveries of which fail then; those that are due to anybody else end as well. */
async function fail(
    bench: WebhookBench,
    count: number,
    now: Date,
    next: NextState = { state: 'exhausted' },
    exporterId?: string,
): Promise<readonly string[]> {
    await bench.publishAt(now, ...Array(count).fill({}));
    const claims = await bench.claimDue({ now, window: 100 });
    const failed = claims.filter(({ exporter }) => exporterId === undefined || exporter.id === exporterId);
    await bench.record(
        claims.map((one) => (failed.includes(one) ? failure(one, 0, { next, health: 'none' }) : success(one, { health: 'none' }))),
        now,
    );
    return failed.map(({ deliveryId }) => deliveryId);
}
