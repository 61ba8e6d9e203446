import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { HandedOut, SweepOptions } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { SessionsOptions } from '../../../lib/webhooks/dispatching/worker-session.ts';
import { assertFields, ids, inParallel, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, type WebhookBench } from './fixture.ts';

/** Claims that ran out and jobs that were lost. */
export const sweepLaws: Laws<WebhookBench> = {
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
            { deliveryId, exporterId: exporter.id, collector: 'default', attempt: 2, singleAttempt: false, reservation: null },
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

    async 'returns the ids of those that it sets aside, once'(bench) {
        const { exporter } = await bench.claimOne();
        const test = await bench.publishTest(exporter.id);
        await bench.claimDue();
        for (let hour = 1; hour < 20; hour++) {
            assert.deepEqual(await setAside(bench, at(hour * 3_600_000)), [], 'tried again');
            await bench.claimDue({ now: at(hour * 3_600_000 + 60_000) });
        }
        const sending = ids(await bench.listed({ state: 'sending' }));
        assert.equal(sending.length, 1);
        assert.deepEqual(await setAside(bench, at(20 * 3_600_000)), sending);
        assert.deepEqual(await setAside(bench, at(21 * 3_600_000)), []);
        await bench.assertDelivery(test, { state: 'exhausted' });
    },

    async 'takes the claims of a session away that is not heard of any more'(bench) {
        const [first, second, third] = await bench.queueMany(3);
        const session = { id: randomUUID(), process: 'a process', slots: {} };
        await bench.setTime(at(0));
        await bench.deliveries.keepAlive(session, 1000);
        await bench.claim([String(first)], at(0), session.id);
        await bench.claim([String(second)], at(0));
        const ended = { id: randomUUID(), process: 'another', slots: {} };
        await bench.deliveries.keepAlive(ended, 1000);
        await bench.claim([String(third)], at(0), ended.id);
        await bench.deliveries.endSessions([ended.id]);
        assert.deepEqual(await bench.deliveries.sessions(), [{ ...session, opensUrls: false }]);

        await sweep(bench, at(999));
        assert.deepEqual(ids(await bench.listed({ state: 'sending' })), [second, first], 'the third is of a session that nobody knows');
        await bench.deliveries.keepAlive(session, 1000);
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

    async 'says of a session for which collectors it sends, and how many attempts at once'(bench) {
        const session = { id: randomUUID(), process: 'a process' };
        const said = async (): Promise<unknown> => only(await bench.deliveries.sessions()).slots;
        await bench.deliveries.keepAlive({ ...session, slots: { default: 3 } }, 1000);
        assert.deepEqual(await said(), { default: 3 });
        await bench.deliveries.keepAlive({ ...session, slots: { default: 3, other: 1 } }, 1000);
        assert.deepEqual(await said(), { default: 3, other: 1 });
    },

    async 'ends a session'(bench) {
        const id = only(await bench.queueMany(1));
        const sessions = ['one', 'two'].map((process) => ({ id: randomUUID(), process, slots: {} }));
        for (const session of sessions) {
            await bench.deliveries.keepAlive(session, 1000);
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

        const requeue = [{ deliveryId: old, exporterId: id, collector: 'west', attempt: 1, singleAttempt: false, reservation: null }];
        assert.deepEqual(await sweep(bench, at(20), { requeueAfter: 10 }), requeue);
        assert.deepEqual(await sweep(bench, at(20), { requeueAfter: 10 }), [], 'renewed');
        assert.equal((await bench.claim([old, fresh])).length, 2, 'still queued');
    },

    async 'takes only the claims of ended sessions away when asked to'(bench) {
        const [ended, silent] = [randomUUID(), randomUUID()];
        const ids = await bench.queueMany(3);
        await bench.setTime(at(0));
        await bench.deliveries.keepAlive({ id: silent, process: '2', slots: {} }, 1000);
        await bench.deliveries.keepAlive({ id: ended, process: '1', slots: {} }, 1000);
        for (const [index, session] of [ended, silent, null].entries()) {
            await bench.claim([present(ids[index])], at(0), session);
        }
        await bench.deliveries.endSessions([ended]);
        const states = async () => (await Promise.all(ids.map((id) => bench.deliveries.get(id)))).map((delivery) => delivery?.state);

        // however long it has been silent
        await sweep(bench, at(2 * 3_600_000), { endedOnly: true });
        await sweep(bench, at(2 * 3_600_000), { endedOnly: true });
        assert.deepEqual(await states(), ['pending', 'sending', 'sending']);
        await sweep(bench, at(2 * 3_600_000));
        assert.deepEqual(await states(), ['pending', 'pending', 'pending']);
    },

    async 'sweeps no more than the limit, and ten times as many claims'(bench) {
        await bench.addExporter();
        await bench.publish(...Array(15).fill({}));
        await bench.claim((await bench.dispatchedIds({ window: 15 })).slice(0, 12));
        for (const [requeued, interrupted] of [
            [1, 10],
            [1, 12],
            [1, 12],
            [0, 12],
        ]) {
            assert.equal((await sweep(bench, at(60_000), { requeueAfter: 50_000, limit: 1 })).length, requeued);
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

/** What a store knows of sessions whose processes may have died. */
export const silentSessionLaws: Laws<WebhookBench> = {
    async 'names a session that is silent where it is asked for, until it is ended'(bench) {
        const { silent, alive } = await oneSilent(bench);
        assert.deepEqual([await named(bench), await named(bench, { silent: false })], [[alive], [alive]]);
        assert.deepEqual(await named(bench, { silent: true }), [alive, silent].toSorted());
        await bench.deliveries.endSessions([silent]);
        assert.deepEqual(await named(bench, { silent: true }), [alive]);
    },
};

/** What a store does that names no silent sessions: it is asked for them all the same. */
export const namingNoSilentLaws: Laws<WebhookBench> = {
    async 'names the sessions that are alive, whether or not it is asked for silent ones, where it names none'(bench) {
        const { alive } = await oneSilent(bench);
        assert.deepEqual([await named(bench), await named(bench, { silent: true })], [[alive], [alive]]);
    },
};

/** A session that was not heard of in time, and one that was. @returns Their ids. */
async function oneSilent(bench: WebhookBench): Promise<Readonly<Record<'silent' | 'alive', string>>> {
    const [silent, alive] = [randomUUID(), randomUUID()];
    await bench.setTime(at(0));
    await bench.deliveries.keepAlive({ id: silent, process: 'one', slots: {} }, 1_000);
    await bench.deliveries.keepAlive({ id: alive, process: 'another', slots: {} }, 60_000);
    await bench.setTime(at(1_000));
    return { silent, alive };
}

async function named({ deliveries }: WebhookBench, options?: SessionsOptions): Promise<readonly string[]> {
    return ids(await deliveries.sessions(options)).toSorted();
}

async function sweep(bench: WebhookBench, now: Date, overrides: Partial<SweepOptions> = {}): Promise<readonly HandedOut[]> {
    await bench.setTime(now);
    return (await bench.deliveries.sweep({ requeueAfter: 1_000_000, limit: 100, ...overrides })).lost;
}

async function setAside(bench: WebhookBench, now: Date): Promise<readonly string[]> {
    await bench.setTime(now);
    return (await bench.deliveries.sweep({ requeueAfter: 1_000_000_000, limit: 100 })).poisoned;
}
