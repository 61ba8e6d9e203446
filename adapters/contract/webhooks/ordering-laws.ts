import assert from 'node:assert/strict';
import type { Claim, Delivery, RecordedOutcome } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { NewEvent } from '../../../lib/webhooks/events/new-event.ts';
import type { StoredExporter } from '../../../lib/webhooks/exporters/exporter.ts';
import { assertFields, ids, only, present, unlessRefused } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, BEGIN_WITHIN, failure, forAll, RULES, sampleEvent, sampleOutcome, success, type WebhookBench } from './fixture.ts';

const HAND_OUT = { window: 10, breakerAfter: RULES.after, beginWithin: BEGIN_WITHIN };

/** What exporters get that are ordered. */
export const orderingLaws: Laws<WebhookBench> = {
    async 'hands out one of a key after the other, in the order of acceptance, and those of others beside'(bench) {
        await addOrdered(bench);
        const [a1, a2, a3, b1, b2] = await accept(bench, ['a', 'a', 'a', 'b', 'b']);
        assert.deepEqual(await deliverAll(bench), [[a1, b1], [a2, b2], [a3]]);
    },

    async 'hands out at once what has a key and no other before it'(bench) {
        await addOrdered(bench);
        const accepted = await bench.deliveries.accept(['a', 'a', 'b', undefined].map(keyed), { handOut: HAND_OUT });
        assert.deepEqual(
            accepted.map(({ handedOut }) => handedOut.length),
            [1, 0, 1, 1],
        );
        for (const [lockTimeout, ...keys] of [[0, 'b', 'c'] as const, [1_000, 'c', 'd'] as const]) {
            const more = await bench.deliveries.accept(keys.map(keyed), { handOut: HAND_OUT, lockTimeout });
            const handedOut = more.map((one) => one.handedOut.length);
            assert.deepEqual(handedOut, [0, 1], 'nor need it wait for a lock');
        }
        assert.deepEqual(await bench.dispatchedIds(), []);
    },

    async 'says that none are left that it may hand out while all wait for another of their key'(bench) {
        await addOrdered(bench);
        await accept(bench, ['a', 'a', 'a']);
        await bench.dispatch();
        const { handedOut, waitsFor } = await bench.deliveries.dispatch({ window: 10, breakerAfter: 3, limit: 10 });
        assert.deepEqual([handedOut, waitsFor], [[], []]);
    },

    async 'lets what fails hold back its own key alone'(bench) {
        await addOrdered(bench);
        const [a1, a2, b1, b2] = await accept(bench, ['a', 'a', 'b', 'b']);
        const [first, other] = await bench.claimDue();
        assert.deepEqual([first?.deliveryId, other?.deliveryId], [a1, b1]);
        await bench.record([failure(present(first), 1_000), success(present(other))], at(10));
        assert.deepEqual(await bench.dispatchedIds({ now: at(20) }), [b2]);
        assert.deepEqual(await bench.dispatchedIds({ now: at(1_009) }), []);
        const again = only(await bench.claimDue({ now: at(1_010) }));
        assert.equal(again.deliveryId, a1);
        await bench.record([success(again)], at(1_020));
        assert.deepEqual(await bench.dispatchedIds({ now: at(1_020) }), [a2]);
    },

    async 'lets places that wait behind another be those of others'(bench) {
        await addOrdered(bench);
        await accept(bench, Array(30).fill('a'));
        const [b] = await accept(bench, ['b']);
        const [first, ...others] = await bench.dispatchedIds({ window: 5, limit: 5 });
        assert.deepEqual(others, [b], `beside ${first}`);
    },

    async 'hands out what has no key, tests and what is of another exporter as if there were no order'(bench) {
        const { id } = await addOrdered(bench);
        const unordered = await bench.addExporter();
        await accept(bench, ['a', 'a', undefined, undefined]);
        await bench.publishTest(id);
        const handedOut = await bench.dispatch({ window: 10 });
        const countOf = (exporterId: string): number => handedOut.filter((one) => one.exporterId === exporterId).length;
        assert.deepEqual([countOf(id), countOf(unordered.id)], [4, 4]);
    },

    async 'keeps the keys of exporters apart'(bench) {
        const [one, other] = [await addOrdered(bench), await addOrdered(bench)];
        await accept(bench, ['a', 'a']);
        const claims = await bench.claimDue();
        assert.equal(claims.length, 2);
        const [failed, delivered] = [claimOf(claims, one), claimOf(claims, other)];
        await bench.record([failure(failed, 60_000), success(delivered)], at(10));
        assert.deepEqual(
            (await bench.dispatch({ now: at(20) })).map(({ exporterId }) => exporterId),
            [other.id],
        );
    },

    async 'goes on after one that failed for good'(bench) {
        await addOrdered(bench);
        const [, second] = await accept(bench, ['a', 'a']);
        await bench.record([exhausted(only(await bench.claimDue()))], at(10));
        assert.deepEqual(await bench.dispatchedIds({ now: at(10) }), [second]);
    },

    async 'blocks a key after one that failed for good until that is replayed, where it is told to'(bench) {
        await addOrdered(bench, { afterExhausted: 'hold' });
        const [a1, a2, a3, b1] = await accept(bench, ['a', 'a', 'a', 'b']);
        const [first, other] = await bench.claimDue();
        await bench.record([exhausted(present(first)), success(present(other))], at(10));
        assert.equal(other?.deliveryId, b1);
        await accept(bench, ['a']);
        assert.deepEqual(await bench.dispatchedIds({ now: at(100_000) }), []);
        await bench.replay(present(a1), at(100_000));
        assert.deepEqual(await bench.dispatchedIds({ now: at(100_000) }), [a1]);
        await bench.record([success(only(await bench.claim([present(a1)], at(100_000))))], at(100_010));
        assert.deepEqual((await deliverAll(bench, 100_020)).slice(0, 2), [[a2], [a3]]);
    },

    async 'lets a key go once what holds it is erased'(bench) {
        await addOrdered(bench, { afterExhausted: 'hold' });
        const [first, second] = await accept(bench, ['a', 'a']);
        await bench.record([exhausted(only(await bench.claimDue()))], at(10));
        await bench.setTime(at(20));
        assertFields(await bench.deliveries.erase(await eventOf(bench, first)), { ended: 1 });
        await bench.assertDelivery(present(first), { state: 'erased' });
        assert.deepEqual(await bench.dispatchedIds({ now: at(20) }), [second]);
    },

    async 'lets keys go that are held once it is told to go on'(bench) {
        const { id } = await addOrdered(bench, { afterExhausted: 'hold' });
        const [, second] = await accept(bench, ['a', 'a']);
        await bench.record([exhausted(only(await bench.claimDue()))], at(10));
        assert.equal((await bench.update(id, { afterExhausted: 'skip' }, at(20))).afterExhausted, 'skip');
        assert.deepEqual(await bench.dispatchedIds({ now: at(20) }), [second]);
    },

    async 'lets all go that waits once an exporter is not ordered any more, and orders what is accepted once it is'(bench) {
        const { id } = await addOrdered(bench);
        await accept(bench, ['a', 'a', 'a']);
        const first = only(await bench.claimDue());
        assert.equal((await bench.update(id, { ordered: false }, at(10))).ordered, false);
        assert.equal((await bench.claimDue({ now: at(10) })).length, 2);
        await bench.record([failure(first, 0)], at(20));
        assert.equal((await bench.dispatch({ now: at(20) })).length, 1);
        await accept(bench, ['a', 'a']);
        await bench.update(id, { ordered: true }, at(30));
        const [ordered] = await accept(bench, ['a', 'a']);
        const handedOut = await bench.dispatchedIds({ now: at(30) });
        assert.deepEqual([handedOut.length, handedOut.includes(present(ordered))], [3, true]);
    },

    async 'keeps the turn of one whose claim has run out, and gives it up with one that is poisoned'(bench) {
        await addOrdered(bench);
        const [first, second] = await accept(bench, ['a', 'a']);
        for (let time = 0; (await bench.deliveries.get(present(first)))?.state !== 'poisoned'; time += 200_000) {
            assert.deepEqual(await bench.dispatchedIds({ now: at(time) }), [first]);
            await bench.claim([present(first)], at(time));
            await bench.setTime(at(time + 100_000));
            await bench.deliveries.sweep({ requeueAfter: 1_000_000, limit: 10 });
        }
        assert.deepEqual(await bench.dispatchedIds({ now: at(10_000_000) }), [second]);
    },

    async 'gives the turn to the next when a success comes late'(bench) {
        await addOrdered(bench);
        const [, second] = await accept(bench, ['a', 'a']);
        const lost = only(await bench.claimDue());
        await bench.setTime(at(100_000));
        await bench.deliveries.sweep({ requeueAfter: 1_000_000, limit: 10 });
        await bench.record([success(lost)], at(100_001));
        assert.deepEqual(await bench.dispatchedIds({ now: at(100_001) }), [second]);
    },

    async 'sends a replay after what is in flight and before what waits'(bench) {
        await addOrdered(bench);
        const [a1, a2, a3] = await accept(bench, ['a', 'a', 'a']);
        await bench.record([success(only(await bench.claimDue()))], at(10));
        const flying = only(await bench.claimDue({ now: at(10) }));
        assert.equal(flying.deliveryId, a2);
        await bench.replay(present(a1), at(20));
        assert.deepEqual(await bench.dispatchedIds({ now: at(20) }), []);
        await bench.record([failure(flying, 0)], at(30));
        assert.deepEqual(await deliverAll(bench, 30), [[a1], [a2], [a3]]);
    },

    async 'goes on in order after a pause and a stop'(bench) {
        const { id } = await addOrdered(bench);
        const [a1, a2] = await accept(bench, ['a', 'a']);
        await bench.dispatch();
        await bench.update(id, { state: 'stopped' }, at(1));
        assert.deepEqual(await bench.claim([present(a1)], at(2)), []);
        await bench.update(id, { state: 'running' }, at(3));
        assert.deepEqual(await deliverAll(bench, 3), [[a1], [a2]]);
    },

    async 'cancels all of an exporter that is removed'(bench) {
        const { id } = await addOrdered(bench, { afterExhausted: 'hold' });
        const [a1, a2, b1, b2] = await accept(bench, ['a', 'a', 'b', 'b']);
        await bench.record([exhausted(claimBy(await bench.claimDue(), a1))], at(10));
        await bench.remove(id, at(20));
        const states = await Promise.all([a1, a2, b1, b2].map(async (one) => (await bench.deliveries.get(present(one)))?.state));
        assert.deepEqual(states, ['exhausted', 'cancelled', 'cancelled', 'cancelled']);
        assert.deepEqual(await bench.dispatch({ now: at(20) }), []);
    },
};

/** The same of keys of the caller's. */
export const orderedKeyLaws: Laws<WebhookBench> = {
    async 'gives a repeated key of the caller the answer of then, in whatever order'(bench) {
        await addOrdered(bench);
        const idempotency = { key: 'once', digest: 'of it' };
        const once = { ...keyed('a'), idempotency };
        const [accepted] = await bench.deliveries.accept([once]);
        const [again, other] = await bench.deliveries.accept([{ ...keyed('a'), idempotency }, keyed('a')], { handOut: HAND_OUT });
        assert.deepEqual([again?.eventId, again?.deliveries, again?.handedOut], [accepted?.eventId, accepted?.deliveries, []]);
        assert.deepEqual(other?.handedOut, []);
        assert.deepEqual(await deliverAll(bench), [accepted?.deliveries, other?.deliveries]);
    },
};

/** The same where retention is kept. */
export const retainedOrderLaws: Laws<WebhookBench> = {
    async 'keeps what blocks a key as long as it does'(bench) {
        const { id } = await addOrdered(bench, { afterExhausted: 'hold' });
        const [first] = await accept(bench, ['a', 'a']);
        await bench.record([exhausted(only(await bench.claimDue()))], at(10));
        const retention = present(bench.deliveries.retention);
        const expire = async (now: Date): Promise<number> => {
            await bench.setTime(now);
            await retention.begin(0);
            let removed = 0;
            for await (const { deliveries } of retention.expire(1_000)) {
                removed += deliveries;
            }
            return removed;
        };
        assert.equal(await expire(at(100_000)), 0);
        assert.deepEqual(await bench.dispatchedIds({ now: at(100_000) }), []);
        await bench.update(id, { afterExhausted: 'skip' }, at(200_000));
        assert.equal(await expire(at(200_000)), 1);
        assert.equal(await bench.deliveries.get(present(first)), null);
    },
};

/** The same where deliveries can be discarded. */
export const discardedOrderLaws: Laws<WebhookBench> = {
    async 'lets a key go once what holds it is discarded'(bench) {
        await addOrdered(bench, { afterExhausted: 'hold' });
        const [first, second, third] = await accept(bench, ['a', 'a', 'a']);
        await bench.record([exhausted(only(await bench.claimDue()))], at(10));
        await bench.setTime(at(20));
        assertFields(await discard(bench, first), {
            id: present(first),
            state: 'cancelled',
            finishedAt: at(20),
            lastCode: 'connect_refused',
        });
        assert.deepEqual(await deliverAll(bench, 20), [[second], [third]]);
    },

    async 'lets the next of a key go once one that waits is discarded, and no other before its turn'(bench) {
        await addOrdered(bench);
        const [first, second, third, fourth] = await accept(bench, ['a', 'a', 'a', 'a']);
        const flying = only(await bench.claimDue());
        await bench.setTime(at(5));
        await discard(bench, second);
        assert.deepEqual(await bench.dispatchedIds({ now: at(5) }), [], 'while the first is in flight');
        await bench.record([failure(flying, 1_000)], at(10));
        await discard(bench, first);
        assert.deepEqual(await deliverAll(bench, 10), [[third], [fourth]]);
    },
};

/** The same in transactions of the application. */
export const joinedOrderLaws: Laws<WebhookBench> = {
    async 'hands out one after the other what was accepted in a transaction of the application'(bench) {
        await addOrdered(bench);
        const host = await bench.begin();
        const accepted = [];
        for (const key of ['a', 'a', 'b', 'a']) {
            accepted.push(...(await bench.deliveries.accept([keyed(key)], { tx: host.tx })));
        }
        await host.commit();
        const [a1, a2, b1, a3] = accepted.flatMap(({ deliveries }) => deliveries);
        assert.deepEqual(await deliverAll(bench), [[a1, b1], [a2], [a3]]);
    },

    async 'waits for nothing that was rolled back'(bench) {
        await addOrdered(bench);
        const host = await bench.begin();
        await bench.deliveries.accept([keyed('a')], { tx: host.tx });
        await host.rollback();
        assert.equal(only(await bench.deliveries.accept([keyed('a')], { handOut: HAND_OUT })).handedOut.length, 1);
    },
};

/** What a store does that keeps no order. It may refuse exporters that are ordered, or events with a key, which it is never given. */
export const noOrderLaws: Laws<WebhookBench> = {
    async 'refuses a key, or hands out what has one as if it had none, where it keeps no order'(bench) {
        await unlessRefused(addOrdered(bench));
        const first = await unlessRefused(accept(bench, ['a']));
        // To refuse only what comes after another of its key is to heed keys.
        const accepted = first === null ? [] : [...first, ...(await accept(bench, ['a', 'a']))];
        assert.deepEqual(ids(await bench.listed()).toSorted(), accepted.toSorted());
        assert.deepEqual((await bench.dispatchedIds()).toSorted(), accepted.toSorted());
    },
};

/** Adds an exporter that is ordered, at the beginning of time. */
export async function addOrdered(bench: WebhookBench, overrides: Partial<StoredExporter> = {}): Promise<StoredExporter> {
    await bench.setTime(at(0));
    return await bench.addExporter({ ordered: true, ...overrides });
}

/** An event with an order key, or without one. */
function keyed(orderKey?: string): NewEvent {
    return { ...forAll(sampleEvent()), ...(orderKey !== undefined && { orderKey }) };
}

/** Accepts an event for each key. @returns Ids of all deliveries, in order. */
export async function accept(bench: WebhookBench, keys: readonly (string | undefined)[]): Promise<readonly string[]> {
    const accepted = await bench.deliveries.accept(keys.map(keyed));
    return accepted.flatMap(({ deliveries }) => deliveries);
}

/** Delivers what is due until nothing is, from so many milliseconds on. @returns The ids of each dispatch. */
export async function deliverAll(bench: WebhookBench, from = 0): Promise<readonly (readonly string[])[]> {
    const waves: (readonly string[])[] = [];
    for (let now = at(from); ; now = new Date(now.getTime() + 1)) {
        const ids = await bench.dispatchedIds({ now });
        if (ids.length === 0) {
            return waves;
        }
        waves.push(ids);
        await bench.record(
            (await bench.claim(ids, now)).map((one) => success(one)),
            now,
        );
    }
}

function exhausted(claim: Claim): RecordedOutcome {
    return success(claim, { outcome: sampleOutcome('connect_refused'), next: { state: 'exhausted' }, health: 'failure' });
}

function claimOf(claims: readonly Claim[], { id }: Pick<StoredExporter, 'id'>): Claim {
    return present(claims.find(({ exporter }) => exporter.id === id));
}

function claimBy(claims: readonly Claim[], id: string | undefined): Claim {
    return present(claims.find(({ deliveryId }) => deliveryId === id));
}

async function eventOf(bench: WebhookBench, id: string | undefined): Promise<string> {
    return present(await bench.deliveries.get(present(id))).eventId;
}

async function discard({ deliveries }: WebhookBench, id: string | undefined): Promise<Delivery> {
    return await present(deliveries.discard?.(present(id)), 'discard()');
}
