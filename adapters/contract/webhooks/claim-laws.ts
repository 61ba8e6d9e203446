import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ClaimRequest, Dispatched, SweepOptions } from '../../../lib/webhooks/store.ts';
import { assertFields, ids, inParallel, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, forAll, sampleEvent, success, type WebhookBench } from './fixture.ts';

/** Claims: who gets one, and what it holds. */
export const claimLaws: Laws<WebhookBench> = {
    async 'claims a queued delivery with its event and its exporter'(bench) {
        const exporter = await bench.addExporter({
            schedule: [1, 2],
            previousSecrets: [{ sealed: 'v1:old', until: at(9) }],
            sealedHeaders: 'sealed too',
        });
        const event = sampleEvent({ body: '{"a":1}' });
        await bench.setTime(at(0));
        await bench.deliveries.accept([forAll(event)]);
        const request = requestFor(only(await bench.dispatchedIds()));
        await bench.setTime(at(10));
        assert.deepEqual(await bench.deliveries.claim([request], null), [
            {
                deliveryId: request.deliveryId,
                token: request.token,
                claimedAt: at(10),
                attempt: 1,
                attemptSinceReplay: 1,
                singleAttempt: false,
                event: { ...event, createdAt: at(0) },
                message: null,
                exporter,
                generation: 0,
            },
        ]);
    },

    async 'opens an attempt with the claim'(bench) {
        const { deliveryId } = await bench.claimOne();
        await bench.assertDelivery(deliveryId, { state: 'sending', attempts: 1, lastCode: null, finishedAt: null });
        assert.deepEqual(await bench.deliveries.attempts(deliveryId), [
            { number: 1, startedAt: at(0), finishedAt: null, outcome: null, late: false },
        ]);
    },

    async 'claims nothing but what is queued'(bench) {
        await bench.addExporter();
        const [done, retry, sending, queued] = await bench.publish({}, {}, {}, {});
        await bench.dispatch();
        const [pending] = await bench.publishAt(at(9));
        const [first, second] = await bench.claim([done, retry, sending].map(String));
        await bench.record([success(present(first)), failure(present(second), 0)]);

        const asked = [pending, done, retry, sending, randomUUID(), 'no-uuid', '', queued].map(String);
        const claims = await bench.deliveries.claim(
            asked.map((id) => requestFor(id)),
            null,
        );
        const claimed = claims.map((one) => one?.deliveryId ?? null);
        assert.deepEqual(claimed, [...Array(7).fill(null), queued]);
        await bench.assertDelivery(String(pending), { attempts: 0 });
        await bench.assertDelivery(String(sending), { attempts: 1 });
    },

    async 'answers claims in the order in which they were asked for'(bench) {
        const requests = (await bench.queueMany(8)).toReversed().map((id) => requestFor(id));
        const claims = await bench.deliveries.claim(requests, null);
        for (const [index, { deliveryId, token }] of requests.entries()) {
            assertFields(claims[index], { deliveryId, token });
        }
    },

    async 'lets one of fifty claims at once win'(bench) {
        const [id, other] = await bench.queueMany(2);
        const requests = Array.from({ length: 50 }, (_, index) => {
            const both = [requestFor(String(id)), requestFor(String(other))];
            return index % 2 === 0 ? both : both.reverse();
        });
        const claims = (await inParallel(50, (index) => bench.deliveries.claim(requests[index] ?? [], null))).flat();
        const won = claims.filter((one) => one !== null);
        assert.deepEqual(won.map(({ deliveryId }) => deliveryId).sort(), [id, other].sort());
        await bench.assertDelivery(String(id), { attempts: 1 });
        assert.deepEqual(await bench.record(won.map((one) => success(one))), [true, true], 'the winners hold the claims');
    },

    async 'lets the first of two claims in one call win'(bench) {
        const id = only(await bench.queueMany(1));
        const requests = [requestFor(id), requestFor(id)];
        const [first, second] = await bench.deliveries.claim(requests, null);
        assert.equal(first?.token, requests[0]?.token);
        assert.equal(second, null);
        assert.equal((await bench.deliveries.attempts(id)).length, 1);
    },

    async 'returns a delivery of a stopped exporter'(bench) {
        const exporter = await bench.addExporter();
        const id = only(await bench.publish());
        await bench.dispatch();
        await bench.update(exporter.id, { state: 'stopped' }, at(1));
        assert.deepEqual(await bench.deliveries.claim([requestFor(id)], null), [null]);
        await bench.assertDelivery(id, { state: 'pending', attempts: 0, dueAt: at(0) });
        await bench.update(exporter.id, { state: 'running' }, at(2));
        assert.deepEqual(await bench.dispatchedIds(), [id]);
    },

    async 'claims a test of a stopped exporter'(bench) {
        const { id } = await bench.addExporter({ state: 'stopped' });
        await bench.publishTest(id);
        const test = only(await bench.claimDue());
        assert.deepEqual([test.singleAttempt, test.exporter.state], [true, 'stopped']);
    },

    async 'claims nothing of a removed exporter'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish();
        const ids = await bench.dispatchedIds();
        await bench.remove(id, at(1));
        assert.deepEqual(
            await bench.deliveries.claim(
                ids.map((id) => requestFor(id)),
                null,
            ),
            [null],
        );
    },

    async 'counts the attempts since the last replay'(bench) {
        const first = await bench.claimOne();
        await bench.fail([first], at(10));
        assert.deepEqual(await bench.dispatch({ now: at(10) }), [
            {
                deliveryId: first.deliveryId,
                exporterId: first.exporter.id,
                collector: 'default',
                attempt: 2,
                singleAttempt: false,
                grant: null,
            },
        ]);
        const second = only(await bench.claim([first.deliveryId], at(11)));
        assert.deepEqual([second.attempt, second.attemptSinceReplay], [2, 2]);
    },
};

/** Claims that ran out and jobs that were lost. */
export const sweepLaws: Laws<WebhookBench> = {
    async 'claims in order as many as the bytes of their bodies allow'(bench) {
        await bench.addExporter();
        const bodies = ['"é"', '"bb"', '"ccc"', '"d"'];
        const ids = await bench.publish(...bodies.map((body) => ({ body })));
        await bench.dispatch();
        const claimed = async (requested: readonly string[], maxBytes: number) => {
            const claims = await bench.deliveries.claim(requested.map(requestFor), null, maxBytes);
            return claims.map((claim) => claim?.event.body ?? null);
        };
        assert.deepEqual(await claimed([randomUUID(), ...ids], 8), [null, ...bodies.slice(0, 2)], 'the third would make it 13 bytes');
        await bench.assertDelivery(present(ids[2]), { state: 'queued', attempts: 0 });
        assert.deepEqual(await claimed(ids, 1), [null, null, '"ccc"'], 'the first of them is claimed all the same');
        assert.deepEqual(await claimed(ids, 3), [null, null, null, '"d"']);
        assert.deepEqual(await claimed(ids, 1), [null, null, null, null]);
    },

    async 'takes a claim away that ran out'(bench) {
        const { deliveryId, exporter } = await bench.claimOne();
        assert.deepEqual(await sweep(bench, at(60_000)), []);

        await bench.assertDelivery(deliveryId, { state: 'pending', dueAt: at(61_000), finishedAt: null, attempts: 1 });
        await bench.assertDelivery(deliveryId, { lastCode: 'interrupted' });
        const attempt = only(await bench.deliveries.attempts(deliveryId));
        assertFields(attempt, { number: 1, finishedAt: at(60_000), late: false });
        assert.deepEqual(
            { ...attempt.outcome, detail: '' },
            {
                code: 'interrupted',
                status: null,
                detail: '',
                retryAfter: null,
                timings: { dns: null, connect: null, tls: null, firstByte: null, total: 60_000 },
                address: null,
                fingerprint: null,
            },
        );
        assert.deepEqual(await bench.dispatch({ now: at(61_000) }), [
            { deliveryId, exporterId: exporter.id, collector: 'default', attempt: 2, singleAttempt: false, grant: null },
        ]);
    },

    async 'exhausts a test whose claim ran out'(bench) {
        const { id } = await bench.addExporter();
        const test = await bench.publishTest(id);
        await bench.claimDue();
        assert.deepEqual(await sweep(bench, at(60_000)), []);
        await bench.assertDelivery(test, { state: 'exhausted', finishedAt: at(60_000), lastCode: 'interrupted' });
    },

    async 'leaves a claim alone that has not run out'(bench) {
        const { deliveryId } = await bench.claimOne();
        assert.deepEqual(await sweep(bench, at(59_999)), []);
        await bench.assertDelivery(deliveryId, { state: 'sending' });
    },

    async 'uses up no try for an interrupted attempt, and takes its time'(bench) {
        const { deliveryId } = await bench.claimOne();
        for (const [index, [ranOut, due]] of (
            [
                [60_000, 61_000],
                [200_000, 202_000],
                [300_000, 304_000],
            ] as const
        ).entries()) {
            await sweep(bench, at(ranOut));
            await bench.assertDelivery(deliveryId, { state: 'pending', dueAt: at(due) });
            assert.deepEqual(await bench.dispatchedIds({ now: at(due) }), [deliveryId]);
            const again = only(await bench.claim([deliveryId], at(due)));
            assert.deepEqual([again.attempt, again.attemptSinceReplay], [index + 2, 1]);
        }
    },

    async 'sets aside a delivery whose claims run out again and again'(bench) {
        const { deliveryId } = await bench.claimOne();
        for (let hour = 1; hour < 20; hour++) {
            await sweep(bench, at(hour * 3_600_000));
            await bench.dispatch({ now: at(hour * 3_600_000 + 60_000) });
            only(await bench.claim([deliveryId], at(hour * 3_600_000 + 60_000)));
        }
        await sweep(bench, at(20 * 3_600_000));
        await bench.assertDelivery(deliveryId, { state: 'poisoned', finishedAt: at(20 * 3_600_000), attempts: 20 });
        assert.deepEqual(ids(await bench.listed({ state: 'poisoned' })), [deliveryId]);
        await bench.replay(deliveryId, at(99));
        assert.deepEqual(await bench.dispatchedIds({ now: at(99) }), [deliveryId]);
    },

    async 'takes the claims of a session away that is not heard of any more'(bench) {
        const [first, second, third] = await bench.queueMany(3);
        const session = { id: randomUUID(), process: 'a process' };
        await bench.setTime(at(0));
        await bench.deliveries.keepAlive({ ...session, slots: {} }, 1000);
        await bench.claim([String(first)], at(0), session.id);
        await bench.claim([String(second)], at(0));
        await bench.claim([String(third)], at(0), randomUUID());
        assert.deepEqual(await bench.deliveries.sessions(), [{ ...session, opensUrls: false }]);

        await sweep(bench, at(999));
        assert.deepEqual(ids(await bench.listed({ state: 'sending' })), [second, first], 'the third is of a session that nobody knows');
        await bench.deliveries.keepAlive({ ...session, slots: {} }, 1000);
        await sweep(bench, at(1998));
        await bench.assertDelivery(String(first), { state: 'sending' });
        await sweep(bench, at(1999));
        await bench.assertDelivery(String(first), { state: 'pending', lastCode: 'interrupted' });
        assert.deepEqual(await bench.deliveries.sessions(), []);
        assert.deepEqual(ids(await bench.listed({ state: 'sending' })), [second]);
    },

    async 'says of a session whether its process opens sealed URLs'(bench) {
        const session = { id: randomUUID(), process: 'a process', slots: {} };
        const said = async (): Promise<unknown> => only(await bench.deliveries.sessions()).opensUrls;
        await bench.deliveries.keepAlive({ ...session, opensUrls: true }, 1000);
        assert.equal(await said(), true);
        await bench.deliveries.keepAlive({ ...session, opensUrls: true }, 1000);
        assert.equal(await said(), true);
        await bench.deliveries.keepAlive(session, 1000);
        assert.equal(await said(), false, 'a version before has taken over');
    },

    async 'ends a session'(bench) {
        const id = only(await bench.queueMany(1));
        const sessions = ['one', 'two'].map((process) => ({ id: randomUUID(), process }));
        for (const session of sessions) {
            await bench.deliveries.keepAlive({ ...session, slots: {} }, 1000);
        }
        await bench.claim([id], at(0), present(sessions[0]).id);
        await bench.deliveries.endSessions([present(sessions[0]).id, randomUUID()]);
        assert.deepEqual(await bench.deliveries.sessions(), [{ ...sessions[1], opensUrls: false }]);
        await sweep(bench, at(1));
        await bench.assertDelivery(id, { state: 'pending' });
    },

    async 'counts no failure for an interrupted attempt'(bench) {
        const { exporter } = await bench.claimOne();
        await sweep(bench, at(60_000));
        assert.deepEqual(await bench.exporters.get(exporter.id), exporter);
    },

    async 'returns jobs that were queued too long ago'(bench) {
        const { id } = await bench.addExporter();
        const old = only(await bench.publish());
        await bench.dispatch({ now: at(0) });
        const fresh = only(await bench.publish());
        await bench.dispatch({ now: at(10) });
        await bench.update(id, { collector: 'west' }, at(11));

        const requeue = [{ deliveryId: old, exporterId: id, collector: 'west', attempt: 1, singleAttempt: false, grant: null }];
        assert.deepEqual(await sweep(bench, at(20), { requeueAfter: 10 }), requeue);
        assert.deepEqual(await sweep(bench, at(20), { requeueAfter: 10 }), [], 'renewed');
        assert.equal((await bench.claim([old, fresh])).length, 2, 'still queued');
    },

    async 'takes only the claims of ended sessions away when asked to'(bench) {
        const [ended, silent] = [randomUUID(), randomUUID()];
        const ids = await bench.queueMany(3);
        for (const [index, session] of [ended, silent, null].entries()) {
            await bench.claim([present(ids[index])], at(0), session);
        }
        await bench.deliveries.keepAlive({ id: silent, process: '2', slots: {} }, 1000);
        await bench.deliveries.keepAlive({ id: ended, process: '1', slots: {} }, 1000);
        await bench.deliveries.endSessions([ended]);
        const states = async () => (await Promise.all(ids.map((id) => bench.deliveries.get(id)))).map((delivery) => delivery?.state);

        // however long it has been silent
        await sweep(bench, at(2 * 3_600_000), { endedOnly: true });
        await sweep(bench, at(2 * 3_600_000), { endedOnly: true });
        assert.deepEqual(await states(), ['pending', 'sending', 'sending']);
        await sweep(bench, at(2 * 3_600_000));
        assert.deepEqual(await states(), ['pending', 'pending', 'pending']);
    },

    async 'sweeps no more than the limit'(bench) {
        await bench.addExporter();
        await bench.publish(...Array(6).fill({}));
        await bench.claim((await bench.dispatchedIds()).slice(0, 3));
        for (const [requeued, interrupted] of [
            [2, 2],
            [1, 3],
        ]) {
            assert.equal((await sweep(bench, at(60_000), { requeueAfter: 50_000, limit: 2 })).length, requeued);
            assert.equal((await bench.listed({ state: 'pending' })).length, interrupted);
        }
    },

    async 'finds each lost claim and job once when several sweep at once'(bench) {
        await bench.addExporter();
        await bench.publish(...Array(10).fill({}));
        await bench.claim((await bench.dispatchedIds()).slice(0, 5));
        const swept = await inParallel(8, () => sweep(bench, at(60_000), { requeueAfter: 50_000 }));
        const requeued = swept.flat().map(({ deliveryId }) => deliveryId);
        assert.deepEqual([requeued.length, new Set(requeued).size], [5, 5]);
        assert.equal((await bench.listed({ state: 'pending' })).length, 5);
    },
};

async function sweep(bench: WebhookBench, now: Date, overrides: Partial<SweepOptions> = {}): Promise<readonly Dispatched[]> {
    await bench.setTime(now);
    return await bench.deliveries.sweep({ requeueAfter: 1_000_000, limit: 100, ...overrides });
}

function requestFor(deliveryId: string): ClaimRequest {
    return { deliveryId, token: randomUUID(), duration: 1000 };
}
