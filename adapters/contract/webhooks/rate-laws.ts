import assert from 'node:assert/strict';
import { only, unlessRefused } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, sampleEvent, success, type WebhookBench } from './fixture.ts';

/** How many deliveries of an exporter that has a rate are handed out. */
export const rateLaws: Laws<WebhookBench> = {
    async 'hands out no more of an exporter in a second than its rate, and of others as many as there are'(bench) {
        const { id } = await bench.addExporter({ rate: 4 });
        const other = await bench.addExporter();
        await bench.publish(...Array(20).fill({}));
        assert.deepEqual(await countsAt(bench, 0, [id, other.id]), [4, 20]);
        const counts = [];
        for (const time of [200, 500, 1_000, 1_200, 60_000, 60_100, 61_000]) {
            counts.push(...(await countsAt(bench, time, [id])));
        }
        assert.deepEqual(counts, [0, 2, 2, 0, 4, 0, 4]);
    },

    async 'keeps a rate whose deliveries are no whole milliseconds apart'(bench) {
        await bench.addExporter({ rate: 150 });
        await bench.publish(...Array(160).fill({}));
        assert.equal((await bench.dispatch({ window: 200 })).length, 150);
        let count = 0;
        for (let time = 7; time <= 56; time += 7) {
            count += (await bench.dispatch({ now: at(time), window: 200 })).length;
        }
        assert.equal(count, 8);
    },

    async 'says that none are left that it may hand out while a rate is used up'(bench) {
        await bench.addExporter({ rate: 2 });
        await bench.publish(...Array(5).fill({}));
        await bench.dispatch();
        assert.deepEqual(await bench.deliveries.dispatch({ window: 10, breakerAfter: 3, limit: 10 }), {
            handedOut: [],
            waitsFor: [],
        });
    },

    async 'hands out nothing at once that is accepted for an exporter with a rate'(bench) {
        await bench.addExporter({ rate: 1_000 });
        assert.deepEqual(only(await bench.acceptAtOnce()).handedOut, []);
        assert.equal((await bench.dispatch()).length, 1);
    },

    async 'counts no test, and hands it out while the rate is used up'(bench) {
        const { id } = await bench.addExporter({ rate: 1 });
        const [first, second] = await bench.publish({}, {});
        assert.deepEqual(await bench.dispatchedIds(), [first]);
        const test = await bench.publishTest(id, at(10));
        assert.deepEqual(await bench.dispatchedIds({ now: at(10) }), [test]);
        assert.deepEqual(await bench.dispatchedIds({ now: at(1_000) }), [second]);
    },

    async 'goes on with a rate when the clock was set back'(bench) {
        const { id } = await bench.addExporter({ rate: 2 });
        await bench.publish(...Array(20).fill({}));
        const counts = [];
        for (const time of [0, 3_600_000, 10_000, 10_200, 10_500]) {
            counts.push(...(await countsAt(bench, time, [id])));
        }
        assert.deepEqual(counts, [2, 2, 2, 0, 1]);
    },

    async 'hands out the rest once an exporter has no rate any more'(bench) {
        const { id } = await bench.addExporter({ rate: 1 });
        await bench.publish(...Array(5).fill({}));
        assert.equal((await bench.dispatch()).length, 1);
        assert.equal((await bench.update(id, { rate: null }, at(1))).rate, null);
        assert.equal((await bench.dispatch({ now: at(1) })).length, 4);
    },
};

/** How many are handed out of all exporters together. */
export const deploymentRateLaws: Laws<WebhookBench> = {
    async 'hands out no more in a second than the rate of all together, whichever call asks'(bench) {
        await bench.addExporter();
        await bench.addExporter();
        await bench.publish(...Array(20).fill({}));
        const counts = [];
        for (const time of [0, 0, 200, 500, 1_000, 60_000, 60_100, 61_000]) {
            counts.push((await bench.dispatch({ now: at(time), window: 100, rate: 4 })).length);
        }
        assert.deepEqual(counts, [4, 0, 0, 2, 2, 4, 0, 4]);
    },

    async 'lets exporters take turns, and none use up the rate of all'(bench) {
        const exporters = [await bench.addExporter(), await bench.addExporter({ rate: 1 }), await bench.addExporter()];
        await bench.publish(...Array(10).fill({}));
        const handedOut = await bench.dispatch({ rate: 5 });
        assert.deepEqual(
            exporters.map(({ id }) => handedOut.filter(({ exporterId }) => exporterId === id).length),
            [2, 1, 2],
        );
    },

    async 'hands out a test before all that waits for the rate of all'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish({}, {});
        assert.equal((await bench.dispatch({ rate: 1 })).length, 1);
        const test = await bench.publishTest(id, at(10));
        assert.deepEqual(await bench.dispatchedIds({ now: at(10), rate: 1 }), []);
        assert.deepEqual(await bench.dispatchedIds({ now: at(1_000), rate: 1 }), [test]);
    },

    async 'says that none are left that it may hand out while the rate of all is used up'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish(...Array(5).fill({}));
        const options = { window: 10, breakerAfter: 3, rate: 2 };
        const { handedOut, waitsFor } = await bench.deliveries.dispatch({ ...options, limit: 10 });
        assert.deepEqual([handedOut.length, waitsFor], [2, []]);
        assert.deepEqual(await bench.deliveries.dispatch({ ...options, limit: 10 }), { handedOut: [], waitsFor: [] });
        await bench.setTime(at(1_000));
        assert.deepEqual((await bench.deliveries.dispatch({ ...options, limit: 1 })).waitsFor, [id], 'a small limit leaves some');
    },

    async 'says what is left for want of places while the rate of all is not used up'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish(...Array(5).fill({}));
        const { handedOut, waitsFor } = await bench.deliveries.dispatch({ window: 2, breakerAfter: 3, rate: 100, limit: 500 });
        assert.deepEqual([handedOut.length, waitsFor], [2, [id]]);
    },

    async 'goes on with the rate of all when the clock was set back'(bench) {
        await bench.addExporter();
        await bench.publish(...Array(20).fill({}));
        const counts = [];
        for (const time of [0, 3_600_000, 10_000, 10_200, 10_500]) {
            counts.push((await bench.dispatch({ now: at(time), window: 100, rate: 2 })).length);
        }
        assert.deepEqual(counts, [2, 2, 2, 0, 1]);
    },

    async 'gives retries a part of the rate of all, and first tries most of it'(bench) {
        await bench.addExporter();
        await makeRetriesDue(bench, 100);
        await bench.publish(...Array(200).fill({}));
        assertPart(await handedOutInTurn(bench, { rate: 5, rounds: 40 }));
    },

    async 'gives retries a part of the rate of all, and first tries most of it, where it is one delivery a second'(bench) {
        await bench.addExporter();
        await makeRetriesDue(bench, 60);
        await bench.publish(...Array(60).fill({}));
        assertPart(await handedOutInTurn(bench, { rate: 1, rounds: 60 }));
    },

    async 'gives retries a part of the rate of all, and first tries most of it, however many exporters have both'(bench) {
        for (let count = 0; count < 12; count++) {
            await bench.addExporter();
        }
        await makeRetriesDue(bench, 10);
        await bench.publish(...Array(10).fill({}));
        assertPart(await handedOutInTurn(bench, { rate: 5, rounds: 20 }));
    },

    async 'gives an exporter that has but retries a part of the rate of all, whatever first tries others have'(bench) {
        await bench.addExporter({ type: 'investigation_legacy', legacy: true });
        const recipients = { types: ['investigation_legacy'] } as const;
        await bench.setTime(at(0));
        await bench.deliveries.accept(Array.from({ length: 60 }, () => ({ event: sampleEvent(), recipients })));
        await makeAllDueAgain(bench);
        await bench.addExporter();
        await bench.publish(...Array(60).fill({}));
        assertPart(await handedOutInTurn(bench, { rate: 1, rounds: 60 }));
    },

    async 'hands out the rest once there is no rate of all any more'(bench) {
        await bench.addExporter();
        await bench.publish(...Array(5).fill({}));
        assert.equal((await bench.dispatch({ rate: 1 })).length, 1);
        assert.equal((await bench.dispatch()).length, 4);
    },
};

/** What a store does that heeds no rate of all exporters together. It may refuse one, which it is never given. */
export const notRatedLaws: Laws<WebhookBench> = {
    async 'refuses a rate of all, or hands out all that is due, where it heeds none'(bench) {
        await bench.addExporter();
        const published = await bench.publish({}, {}, {});
        const handedOut = (await unlessRefused(bench.dispatchedIds({ rate: 1 }))) ?? (await bench.dispatchedIds());
        assert.deepEqual(handedOut.toSorted(), published.toSorted());
    },
};

/** How many are handed out to each of the exporters at a time. */
async function countsAt(bench: WebhookBench, time: number, exporterIds: readonly string[]): Promise<readonly number[]> {
    const handedOut = await bench.dispatch({ now: at(time), window: 100 });
    return exporterIds.map((id) => handedOut.filter(({ exporterId }) => exporterId === id).length);
}

/** So many retries are due of each exporter. */
async function makeRetriesDue(bench: WebhookBench, count: number): Promise<void> {
    await bench.publish(...Array(count).fill({}));
    await makeAllDueAgain(bench);
}

/** All that is due is tried, in vain, and due again at once. */
async function makeAllDueAgain(bench: WebhookBench): Promise<void> {
    await bench.fail(await bench.claimDue({ window: 100 }), at(0), { health: 'none' });
}

/** What is handed out, and delivered, in so many seconds: whether each is a retry. */
async function handedOutInTurn(
    bench: WebhookBench,
    { rate, rounds }: { readonly rate: number; readonly rounds: number },
): Promise<readonly boolean[]> {
    const areRetries: boolean[] = [];
    for (let round = 1; round <= rounds; round++) {
        const now = at(1_000 * round);
        const handedOut = await bench.dispatch({ now, window: 100, rate });
        areRetries.push(...handedOut.map(({ attempt }) => attempt > 1));
        const claims = await bench.claim(
            handedOut.map(({ deliveryId }) => deliveryId),
            now,
        );
        await bench.record(
            claims.map((claim) => success(claim)),
            now,
        );
    }
    assert.equal(areRetries.length, rate * rounds);
    return areRetries;
}

/** An eighth of them are retries, more or less. */
function assertPart(areRetries: readonly boolean[]): void {
    const retries = areRetries.filter(Boolean).length;
    assert.ok(retries > 0 && retries < areRetries.length / 3, `${retries} of ${areRetries.length} are retries`);
}
