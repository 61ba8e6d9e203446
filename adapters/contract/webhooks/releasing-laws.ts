import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Claim, RecordedOutcome } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { StoredExporter } from '../../../lib/webhooks/exporters/exporter.ts';
import { ids } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, RULES, sampleOutcome, success, type WebhookBench } from './fixture.ts';
import { accept, addOrdered } from './ordering-laws.ts';

/** More than a store that takes care of others should let go with one statement, and no whole number of it. */
const MANY = 250;
/** Room for all of them. */
const WINDOW = 1_000;

/** What becomes of many deliveries that wait for others of their order key once their exporter is changed. It may take several dispatches. */
export const releasingLaws: Laws<WebhookBench> = {
    async 'lets all go once an exporter is not ordered any more, however many wait, and each once'(bench) {
        const { id } = await addRoomy(bench);
        const accepted = await acceptMany(bench, () => 'a');
        assert.equal((await bench.dispatch({ window: WINDOW })).length, 1);
        assert.equal((await bench.update(id, { ordered: false }, at(10))).ordered, false);
        const handedOut = await dispatchAll(bench, 10);
        assert.deepEqual(handedOut.toSorted(), accepted.slice(1).toSorted());
    },

    async 'sends at once what is accepted once an exporter is not ordered any more, however many waited'(bench) {
        const { id } = await addRoomy(bench);
        await acceptMany(bench, () => 'a');
        await bench.dispatch({ window: WINDOW });
        await bench.update(id, { ordered: false }, at(10));
        const later = await accept(bench, ['a', 'a', 'a']);
        const handedOut = await bench.dispatchedIds({ now: at(10), window: WINDOW });
        assert.deepEqual(
            later.filter((one) => !handedOut.includes(one)),
            [],
        );
    },

    async 'lets go what waited before a change although that is taken back at once, and orders what is accepted since'(bench) {
        const { id } = await addRoomy(bench);
        const accepted = await acceptMany(bench, (index) => `key ${index % 2}`);
        await bench.update(id, { ordered: false }, at(10));
        await bench.update(id, { ordered: true }, at(10));
        const [first, second, other] = await accept(bench, ['key 0', 'key 0', 'key 1']);
        const handedOut = await dispatchAll(bench, 10);
        assert.deepEqual(handedOut.toSorted(), [...accepted, first, other].toSorted());
        await bench.record(
            (await bench.claim(handedOut, at(10_000))).map((one) => success(one)),
            at(10_000),
        );
        assert.deepEqual(await dispatchAll(bench, 10_000), [second]);
    },

    async 'keeps the order of what is replayed once an exporter is ordered again, however many are let go meanwhile'(bench) {
        const { id } = await addRoomy(bench, { afterExhausted: 'hold' });
        const [first = ''] = await acceptMany(bench, (index) => (index === 0 ? 'z' : 'a'));
        const flying = (await bench.claimDue({ window: WINDOW })).filter(({ deliveryId }) => deliveryId === first);
        await bench.record(flying.map(exhausted), at(10));
        await bench.update(id, { ordered: false }, at(20));
        await bench.update(id, { ordered: true }, at(20));
        await bench.replay(first, at(30));
        const [next = ''] = await accept(bench, ['z']);
        const handedOut = await dispatchAll(bench, 30);
        assert.deepEqual([handedOut.length, handedOut.includes(first), handedOut.includes(next)], [MANY - 1, true, false]);
    },

    async 'lets all keys go that were held once an exporter skips, however many, and holds those that fail once it holds again'(bench) {
        const { id } = await addRoomy(bench, { afterExhausted: 'hold' });
        const firsts = await acceptMany(bench, (index) => `key ${index}`);
        const seconds = await acceptMany(bench, (index) => `key ${index}`);
        const claims = await bench.claimDue({ window: WINDOW });
        assert.deepEqual(claims.map(({ deliveryId }) => deliveryId).toSorted(), firsts.toSorted());
        const [late, ...others] = claims;
        await bench.record(others.map(exhausted), at(10));
        assert.deepEqual(await dispatchAll(bench, 10), []);

        await bench.update(id, { afterExhausted: 'skip' }, at(1_000));
        await bench.update(id, { afterExhausted: 'hold' }, at(1_000));
        await bench.record(late === undefined ? [] : [exhausted(late)], at(1_010));
        const held = seconds[firsts.indexOf(late?.deliveryId ?? '')];
        assert.deepEqual((await dispatchAll(bench, 1_010)).toSorted(), seconds.filter((one) => one !== held).toSorted());
    },

    async 'takes with a removal what is not let go yet'(bench) {
        const { id } = await addRoomy(bench, { afterExhausted: 'hold' });
        await acceptMany(bench, (index) => `key ${index % 7}`);
        await bench.update(id, { ordered: false }, at(10));
        await bench.remove(id, at(20));
        assert.deepEqual(await dispatchAll(bench, 20), []);
        assert.deepEqual(ids(await bench.listed({ limit: 1, state: 'pending' })), []);
    },
};

/** Adds an exporter that is ordered, for which everything can be in flight at once. */
async function addRoomy(bench: WebhookBench, overrides: Partial<StoredExporter> = {}): Promise<StoredExporter> {
    const exporter = await addOrdered(bench, overrides);
    await bench.deliveries.keepAlive({ id: randomUUID(), process: 'one', slots: { [exporter.collector]: 2 * WINDOW } }, 1_000_000);
    return exporter;
}

function acceptMany(bench: WebhookBench, keyOf: (index: number) => string): Promise<readonly string[]> {
    return accept(
        bench,
        Array.from({ length: MANY }, (_, index) => keyOf(index)),
    );
}

/** Dispatches until nothing is handed out and the store goes on with nothing. */
async function dispatchAll(bench: WebhookBench, from: number): Promise<readonly string[]> {
    const all: string[] = [];
    for (let now = from; ; now += 1) {
        await bench.setTime(at(now));
        const { handedOut, goOnIn } = await bench.deliveries.dispatch({ window: WINDOW, breakerAfter: RULES.after, limit: WINDOW });
        all.push(...handedOut.map(({ deliveryId }) => deliveryId));
        if (handedOut.length === 0 && goOnIn === undefined) {
            return all;
        }
    }
}

/** For good, and no fault of the exporter's. */
function exhausted(claim: Claim): RecordedOutcome {
    return success(claim, { outcome: sampleOutcome('connect_refused'), next: { state: 'exhausted' }, health: 'none' });
}
