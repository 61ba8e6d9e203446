import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { ids, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, success, type WebhookBench } from './fixture.ts';

/** Deliveries as they are listed, looked at and replayed. */
export const deliveryLaws: Laws<WebhookBench> = {
    async 'knows nothing of a delivery that does not exist'({ deliveries }) {
        for (const id of [randomUUID(), 'no-uuid']) {
            assert.equal(await deliveries.get(id), null);
            assert.deepEqual(await deliveries.attempts(id), []);
            await assert.rejects(deliveries.replay(id), { code: 'NOT_FOUND' });
            assert.deepEqual(await deliveries.list({ exporterId: id, limit: 9 }), []);
            assert.deepEqual(await deliveries.list({ after: id, limit: 9 }), []);
        }
    },

    async 'lists the newest first, page by page'(bench) {
        await bench.addExporter();
        const published = await bench.publish({}, {}, {}, {}, {});
        const newestFirst = await Promise.all(published.toReversed().map((id) => bench.deliveries.get(id)));
        assert.deepEqual(await bench.deliveries.list({ limit: 2 }), newestFirst.slice(0, 2));
        for (const [after, page] of [
            [3, newestFirst.slice(2, 4)],
            [1, newestFirst.slice(4)],
            [0, []],
        ] as const) {
            assert.deepEqual(await bench.deliveries.list({ limit: 2, after: present(published[after]) }), page);
        }
    },

    async 'lists the deliveries of a state'(bench) {
        const { id } = await bench.addExporter();
        const handed = [...(await bench.publish({}, {}, {}, {}))];
        await bench.dispatch();
        const published = [...handed, ...(await bench.publishAt(at(9)))];
        const [delivered, exhausted] = await bench.claim(handed.slice(0, 3));
        await bench.record([success(present(delivered)), failure(present(exhausted), 0, { next: { state: 'exhausted' } })]);

        for (const [index, state] of (['delivered', 'exhausted', 'sending', 'queued', 'pending'] as const).entries()) {
            assert.deepEqual(ids(await bench.listed({ state })), [published[index]]);
        }
        await bench.remove(id, at(1));
        assert.deepEqual(ids(await bench.listed({ state: 'cancelled' })), published.slice(2).reverse());
    },

    async 'lists the deliveries of an exporter'(bench) {
        await bench.addExporter();
        const { id } = await bench.addExporter({ createdAt: at(1) });
        const newestFirst = (await bench.publish({}, {}, {})).filter((_, index) => index % 2 === 1).reverse();
        assert.deepEqual(ids(await bench.listed({ exporterId: id })), newestFirst);
        const page = await bench.deliveries.list({ exporterId: id, state: 'pending', after: present(newestFirst[0]), limit: 1 });
        assert.deepEqual(ids(page), [newestFirst[1]]);
    },

    async 'lists the deliveries of an outcome'(bench) {
        const { id } = await bench.addExporter();
        const published = [...(await bench.publish({}, {}, {}, {}))];
        await bench.dispatch();
        const [delivered, exhausted, failed] = await bench.claim(published.slice(0, 3));
        await bench.record([
            success(present(delivered)),
            failure(present(exhausted), 0, { next: { state: 'exhausted' } }),
            failure(present(failed), 0, { next: { state: 'exhausted' } }),
        ]);

        assert.deepEqual(ids(await bench.listed({ outcome: 'delivered' })), [published[0]]);
        assert.deepEqual(ids(await bench.listed({ outcome: 'connect_refused' })), [published[2], published[1]]);
        assert.deepEqual(await bench.listed({ outcome: 'timeout' }), []);
        const page = { outcome: 'connect_refused', exporterId: id, state: 'exhausted', after: present(published[2]) } as const;
        assert.deepEqual(ids(await bench.listed(page)), [published[1]]);
    },

    async 'lists the deliveries of a kind, and those of an event'(bench) {
        await bench.addExporter();
        await bench.addExporter({ createdAt: at(1) });
        const published = await bench.publish({}, { kind: 'ours' }, {}, { kind: 'ours' });
        assert.deepEqual(
            ids(await bench.listed({ kind: 'ours' })),
            [7, 6, 3, 2].map((index) => published[index]),
        );
        assert.deepEqual(ids(await bench.listed({ kind: 'ours', after: present(published[6]), limit: 1 })), [published[3]]);
        assert.deepEqual(await bench.listed({ kind: 'theirs' }), []);

        const { eventId } = present(await bench.deliveries.get(present(published[4])));
        assert.deepEqual(ids(await bench.listed({ eventId })), [published[5], published[4]]);
        assert.deepEqual(ids(await bench.listed({ eventId, after: present(published[5]) })), [published[4]]);
        assert.deepEqual(await bench.listed({ eventId, kind: 'ours' }), []);
        for (const id of [randomUUID(), 'no-uuid']) {
            assert.deepEqual(await bench.listed({ eventId: id }), []);
        }
    },

    async 'lists the deliveries of a span of time'(bench) {
        assert.deepEqual(await bench.listed({ since: at(0), until: at(1) }), []);
        await bench.addExporter();
        const hours = (count: number): Date => at(count * 3_600_000);
        const published = [];
        for (const hour of [0, 1, 2, 3, 4, 5]) {
            published.push(...(await bench.publishAt(hours(hour), {}, {})));
        }
        for (const [query, first, end] of [
            [{ since: hours(2) }, 4, 12],
            [{ since: hours(2), until: hours(4) }, 4, 8],
            [{ until: hours(1) }, 0, 2],
            [{ since: at(1), until: at(2) }, 0, 0],
            [{ since: hours(9) }, 0, 0],
            [{ until: hours(2), after: present(published[2]) }, 0, 2],
        ] as const) {
            assert.deepEqual(ids(await bench.listed(query)), published.slice(first, end).reverse(), JSON.stringify(query));
            assert.equal(await bench.deliveries.count(query, 100), end - first, JSON.stringify(query));
        }
    },

    async 'counts what it would list, up to a number'(bench) {
        const { id } = await bench.addExporter();
        assert.equal(await bench.deliveries.count({}, 9), 0);
        const [first] = await bench.publish({}, {}, { kind: 'ours' }, {});
        const held = only(await bench.claimDue({ limit: 1 }));
        await bench.record([failure(held, 0, { next: { state: 'exhausted' } })]);
        for (const [query, count] of [
            [{}, 4],
            [{ kind: 'ours' }, 1],
            [{ state: 'exhausted', exporterId: id }, 1],
            [{ outcome: 'connect_refused' }, 1],
            [{ after: present(first) }, 0],
            [{ exporterId: randomUUID() }, 0],
            [{ eventId: randomUUID() }, 0],
        ] as const) {
            assert.equal(await bench.deliveries.count(query, 9), count, JSON.stringify(query));
        }
        assert.equal(await bench.deliveries.count({}, 3), 3);
    },

    async 'lists attempts first to last'(bench) {
        const first = await bench.claimOne();
        for (const number of [2, 3]) {
            const held = number === 2 ? first : only(await bench.claim([first.deliveryId], at(10)));
            await bench.fail([held], at(10));
            await bench.dispatch({ now: at(10) });
        }
        await bench.claim([first.deliveryId], at(30));
        const attempts = await bench.deliveries.attempts(first.deliveryId);
        assert.deepEqual(
            attempts.map(({ number, startedAt, outcome }) => [number, startedAt, outcome?.code]),
            [
                [1, at(0), 'connect_refused'],
                [2, at(10), 'connect_refused'],
                [3, at(30), undefined],
            ],
        );
    },

    async 'restarts the retry schedule for a replayed delivery'(bench) {
        for (const state of ['delivered', 'exhausted'] as const) {
            const first = await bench.claimOne();
            await bench.fail([first], at(10));
            await bench.dispatch({ now: at(10) });
            const second = only(await bench.claim([first.deliveryId], at(10)));
            await bench.record([success(second, { next: { state } })]);
            const before = await bench.deliveries.get(first.deliveryId);

            const replayed = await bench.replay(first.deliveryId, at(99));
            assert.deepEqual(replayed, { ...before, state: 'pending', dueAt: at(99), finishedAt: null });
            assert.deepEqual(await bench.deliveries.get(first.deliveryId), replayed);
            assert.deepEqual(await bench.dispatchedIds({ now: at(98) }), []);
            assert.deepEqual(await bench.dispatch({ now: at(99) }), [
                {
                    deliveryId: first.deliveryId,
                    exporterId: first.exporter.id,
                    collector: 'default',
                    attempt: 3,
                    singleAttempt: false,
                    reservation: null,
                },
            ]);
            const third = only(await bench.claim([first.deliveryId], at(99)));
            assert.deepEqual([third.attempt, third.attemptSinceReplay, third.event], [3, 1, first.event]);
            await bench.remove(first.exporter.id, at(99));
        }
    },

    async 'tries a replayed delivery like a fresh one'(bench) {
        const held = await bench.claimOne();
        await bench.fail([held], at(0), { next: { state: 'exhausted' } });
        const retry = only(await bench.publish());
        await bench.fail(await bench.claimDue(), at(10));
        await bench.replay(held.deliveryId, at(20));
        assert.deepEqual(await bench.dispatchedIds({ now: at(20), window: 1 }), [held.deliveryId]);
        assert.deepEqual(await bench.dispatchedIds({ now: at(20), window: 2 }), [retry]);
    },

    async 'tries what waits for its next try at once when it is replayed'(bench) {
        const claim = await bench.claimOne();
        await bench.fail([claim], at(10), { next: { state: 'pending', delay: 3_600_000 } });
        const before = await bench.deliveries.get(claim.deliveryId);
        const replayed = await bench.replay(claim.deliveryId, at(20));
        assert.deepEqual(replayed, { ...before, state: 'pending', dueAt: at(20), finishedAt: null });
        const again = only(await bench.claimDue({ now: at(20) }));
        assert.deepEqual([again.deliveryId, again.attempt, again.attemptSinceReplay], [claim.deliveryId, 2, 1]);
        await assert.rejects(bench.replay(claim.deliveryId, at(30)), { code: 'CONFLICT' }, 'it is being sent');
    },

    async 'replays a test as a single attempt'(bench) {
        const { id } = await bench.addExporter({ state: 'stopped' });
        const test = await bench.publishTest(id);
        const held = only(await bench.claimDue());
        await bench.fail([held], at(0), { next: { state: 'exhausted' }, health: 'none' });
        await bench.replay(test, at(9));
        const again = only(await bench.claimDue({ now: at(9) }));
        assert.deepEqual([again.singleAttempt, again.attempt], [true, 2]);
    },

    async 'refuses to replay what is under way'(bench) {
        await bench.addExporter();
        const [sending, queued] = await bench.publish({}, {});
        await bench.dispatch();
        const [pending] = await bench.publishAt(at(9));
        await bench.claim([String(sending)]);
        for (const id of [sending, queued, pending]) {
            await assert.rejects(bench.replay(String(id), at(9)), { code: 'CONFLICT' });
        }
        const states = (await bench.listed()).map(({ state }) => state);
        assert.deepEqual(states, ['pending', 'queued', 'sending']);
    },

    async 'refuses to replay for an exporter that was removed'(bench) {
        const held = await bench.claimOne();
        const cancelled = only(await bench.publish());
        await bench.record([success(held)]);
        await bench.remove(held.exporter.id, at(60));
        for (const id of [held.deliveryId, cancelled]) {
            await assert.rejects(bench.replay(id, at(99)), { code: 'CONFLICT' });
        }
        await bench.assertDelivery(held.deliveryId, { state: 'delivered' });
    },
};
