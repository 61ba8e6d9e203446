import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Claim, HandedOut } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { SHARES } from '../../../lib/webhooks/dispatching/slot-shares.ts';
import type { StoredExporter } from '../../../lib/webhooks/exporters/exporter.ts';
import { only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, RULES, sampleEvent, sampleOutcome, success, type WebhookBench } from './fixture.ts';

/** How the exporters of a collector share the slots of its workers. */
export const sharingLaws: Laws<WebhookBench> = {
    async 'gives slow exporters half of the slots, to each its share'(bench) {
        await offerSlots(bench, 8);
        const exporters = await addExporters(bench, 2);
        await bench.publish(...Array(5).fill({}));
        assert.deepEqual(await countsOf(bench, exporters, await bench.dispatch()), [2, 2]);
        assert.deepEqual(await bench.dispatch(), []);
    },

    async 'gives a slow exporter all of their half when no other wants it'(bench) {
        await offerSlots(bench, 8);
        const exporters = await addExporters(bench, 1);
        await bench.publish(...Array(5).fill({}));
        assert.deepEqual(await countsOf(bench, exporters, await bench.dispatch()), [4]);
    },

    async 'gives slow exporters a slot however few there are'(bench) {
        await offerSlots(bench, 1);
        await addExporters(bench, 2);
        await bench.publish();
        assert.equal((await bench.dispatch()).length, 1);
    },

    async 'gives each slow exporter its turn when there are more of them than slots, however long the others wait'(bench) {
        await offerSlots(bench, 4);
        const exporters = [...(await addExporters(bench, 4))];
        await bench.publish(...Array(40).fill({}));
        exporters.push(await bench.addExporter());
        await bench.publishAt(at(10), ...Array(10).fill({}));
        const served: string[] = [];
        for (let step = 1; step <= 10; step++) {
            const claims = await bench.claimDue({ now: at(1000 * step) });
            assert.equal(claims.length, 2);
            served.push(...claims.map(({ exporter }) => exporter.id));
            await bench.record(
                claims.map((claim) => success(claim, { outcome: outcomeAfter(SHARES.slowAfter) })),
                at(1000 * step),
            );
        }
        for (const round of [served.slice(0, 10), served.slice(10)]) {
            assert.deepEqual(
                exporters.map(({ id }) => round.filter((one) => one === id).length),
                [2, 2, 2, 2, 2],
            );
        }
    },

    async 'shares among those that have something due or in flight'(bench) {
        await offerSlots(bench, 8);
        await addExporters(bench, 3);
        await bench.publish();
        const tried = await bench.claimDue();
        await bench.record(tried.map((claim) => failure(claim, 60_000, { health: 'none' })));
        const other = await bench.addExporter({ type: 'investigation_legacy', legacy: true });
        const recipients = { types: ['investigation_legacy'] } as const;
        await bench.deliveries.accept(Array.from({ length: 5 }, () => ({ event: sampleEvent(), recipients })));
        assert.deepEqual(await countsOf(bench, [other], await bench.dispatch({ now: at(80) })), [4]);
    },

    async 'gives a quick exporter what slow ones do not hold'(bench) {
        await offerSlots(bench, 6);
        const quick = await addQuickExporter(bench);
        const slow = await addExporters(bench, 3);
        await bench.publish(...Array(12).fill({}));
        assert.deepEqual(await countsOf(bench, [quick, ...slow], await bench.dispatch({ window: 20 })), [12, 1, 1, 1]);
    },

    async 'takes an exporter for slow after a delivery that took long'(bench) {
        await offerSlots(bench, 8);
        const exporter = await addQuickExporter(bench);
        await bench.publish(...Array(10).fill({}));
        const held = await bench.claim(await bench.dispatchedIds({ limit: 1 }));
        await bench.record(held.map((claim) => success(claim, { outcome: outcomeAfter(SHARES.slowAfter) })));
        assert.deepEqual(await countsOf(bench, [exporter], await bench.dispatch()), [4]);
    },

    async 'takes an exporter for slow while an attempt takes long'(bench) {
        await offerSlots(bench, 8);
        const exporter = await addQuickExporter(bench);
        await bench.publish(...Array(10).fill({}));
        await bench.claim(await bench.dispatchedIds({ limit: 1 }));
        const now = at(SHARES.slowAfter + 1);
        assert.deepEqual(await countsOf(bench, [exporter], await bench.dispatch({ now })), [3]);
    },

    async 'takes an exporter for neither quick nor slow by failures that come at once, tests, or in between'(bench) {
        await offerSlots(bench, 8);
        const exporter = present((await addExporters(bench, 1))[0]);
        await bench.publish(...Array(10).fill({}));
        const [one, other] = await bench.claimDue({ limit: 2 });
        await bench.record([failure(present(one), 60_000), success(present(other), { outcome: outcomeAfter(SHARES.quickWithin + 1) })]);
        const test = await bench.publishTest(exporter.id);
        await bench.record((await bench.claimDue({ limit: 1 })).map((claim) => success(claim, { health: 'none' })));
        assert.equal((await bench.deliveries.get(test))?.state, 'delivered');
        assert.deepEqual(await countsOf(bench, [exporter], await bench.dispatch({ now: at(50) })), [4]);
    },

    async 'counts the slots of the sessions that are alive, of each collector its own'(bench) {
        await offerSlots(bench, 6);
        await bench.deliveries.keepAlive({ id: randomUUID(), process: 'other', slots: { default: 2, west: 50 } }, 1000);
        const exporters = await addExporters(bench, 1);
        await bench.publish(...Array(10).fill({}));
        assert.deepEqual(await countsOf(bench, exporters, await bench.dispatch()), [4]);
        assert.deepEqual(await countsOf(bench, exporters, await bench.dispatch({ now: at(1000) })), [0]);
    },

    async 'lets exporters of other collectors have their own slots'(bench) {
        await offerSlots(bench, 4);
        const exporters = [present((await addExporters(bench, 1))[0]), await bench.addExporter({ collector: 'west' })];
        await bench.publish(...Array(4).fill({}));
        assert.deepEqual(await countsOf(bench, exporters, await bench.dispatch()), [2, 4]);
    },

    async 'hands out a single attempt however much is in flight'(bench) {
        await offerSlots(bench, 2);
        const exporter = present((await addExporters(bench, 1))[0]);
        await bench.publish({}, {});
        await bench.dispatch({ window: 1 });
        const test = await bench.publishTest(exporter.id);
        assert.deepEqual(await bench.dispatch({ window: 1 }), [
            { deliveryId: test, exporterId: exporter.id, collector: 'default', attempt: 1, singleAttempt: true, reservation: null },
        ]);
    },

    async 'keeps an eighth of the window for retries'(bench) {
        await bench.addExporter();
        const retries = await retriesDue(bench, 4);
        await bench.publishAt(at(100), ...Array(20).fill({}));
        const handed = await bench.dispatchedIds({ now: at(100), window: 16 });
        assert.deepEqual(handed.filter((id) => retries.includes(id)).length, 2);
        assert.equal(handed.length, 16);
    },

    async 'keeps a window that is too small for it for retries in an eighth of the time'(bench) {
        await bench.addExporter();
        const retry = only(await retriesDue(bench, 1));
        await bench.publishAt(at(100), ...Array(20).fill({}));
        let first = 0;
        for (let step = 0; step < 8; step++) {
            const now = at(100 + 100 * step);
            const [claim] = await bench.claimDue({ now, window: 1 });
            first += Number(claim?.deliveryId === retry);
            await bench.record([failure(present(claim), claim?.deliveryId === retry ? 0 : 60_000, { health: 'none' })], now);
        }
        assert.equal(first, 1);
    },

    async 'keeps it for retries in an eighth of the time too where room comes at the same part of a second again and again'(bench) {
        await bench.addExporter();
        const retry = only(await retriesDue(bench, 1));
        const turns = 80;
        await bench.publishAt(at(100), ...Array(turns).fill({}));
        let first = 0;
        for (let step = 0; step < turns; step++) {
            const now = at(100 + 800 * step);
            const claim = present((await bench.claimDue({ now, window: 1 }))[0]);
            first += Number(claim.deliveryId === retry);
            await bench.record([failure(claim, claim.deliveryId === retry ? 0 : 600_000, { health: 'none' })], now);
        }
        assert.ok(first >= turns / 16 && first <= turns / 4, `${first} of ${turns} were for the retry`);
    },

    async 'says that what an exporter has left beyond its window waits for its own end'(bench) {
        const [first] = await addExporters(bench, 1);
        await bench.publish({}, {});
        await bench.addExporter();
        await bench.publish();
        assert.deepEqual(await leftBy(bench, { window: 2 }), { count: 3, waitsFor: [first?.id] });
        assert.deepEqual(await leftBy(bench, { window: 2 }), { count: 0, waitsFor: [first?.id] });
        await bench.update(first?.id ?? '', { state: 'stopped' }, at(1));
        assert.deepEqual(await leftBy(bench, { window: 2 }), { count: 0, waitsFor: [] }, 'it takes none now');
    },

    async 'says that what is left for want of places waits for all that share them'(bench) {
        await offerSlots(bench, 4);
        const sharers = await addExporters(bench, 2);
        await bench.addExporter({ collector: 'west' });
        await bench.publish({}, {});
        assert.deepEqual(await leftBy(bench, { window: 3 }), { count: 4, waitsFor: idsOf(sharers) });
    },

    async 'says that what is left of slow exporters waits for no quick one'(bench) {
        await offerSlots(bench, 4);
        await addQuickExporter(bench);
        const slow = await addExporters(bench, 2);
        await bench.publish({}, {});
        assert.deepEqual(await leftBy(bench, { window: 3 }), { count: 4, waitsFor: idsOf(slow) });
    },

    async 'says that what is left of quick exporters for want of places waits for slow ones too'(bench) {
        await offerSlots(bench, 2);
        const quick = await addQuickExporter(bench);
        const slow = await addExporters(bench, 1);
        await bench.publish(...Array(12).fill({}));
        const { waitsFor } = await leftBy(bench, { window: 20 });
        assert.deepEqual(waitsFor, idsOf([quick, ...slow]));
    },
};

function idsOf(exporters: readonly StoredExporter[]): readonly string[] {
    return exporters.map(({ id }) => id).sort();
}

/** How many a dispatch has handed out, and what the rest waits for. */
async function leftBy({ deliveries }: WebhookBench, options: { readonly window: number }) {
    const { handedOut, waitsFor } = await deliveries.dispatch({ breakerAfter: RULES.after, limit: 100, ...options });
    return { count: handedOut.length, waitsFor: [...waitsFor].sort() };
}

/** A session that is alive for the first second. */
async function offerSlots({ deliveries }: WebhookBench, slots: number): Promise<void> {
    await deliveries.keepAlive({ id: randomUUID(), process: 'one', slots: { default: slots } }, 1_000_000);
}

async function addExporters(bench: WebhookBench, count: number): Promise<readonly StoredExporter[]> {
    return await Promise.all(Array.from({ length: count }, () => bench.addExporter()));
}

/** An exporter that has taken a delivery quickly; no other may be there yet. */
async function addQuickExporter(bench: WebhookBench): Promise<StoredExporter> {
    const claim = await bench.claimOne();
    await bench.record([success(claim, { outcome: outcomeAfter(SHARES.quickWithin) })], at(0));
    return claim.exporter;
}

/** Ids of so many deliveries that wait for a retry that is due; no other exporter may be there. */
async function retriesDue(bench: WebhookBench, count: number): Promise<readonly string[]> {
    await bench.publish(...Array(count).fill({}));
    const claims: readonly Claim[] = await bench.claimDue();
    await bench.record(
        claims.map((claim) => failure(claim, 0, { health: 'none' })),
        at(0),
    );
    return claims.map(({ deliveryId }) => deliveryId);
}

function outcomeAfter(total: number) {
    return sampleOutcome('delivered', { timings: { dns: 0, connect: 0, tls: null, firstByte: total, total } });
}

/** How many of them are for each exporter. */
async function countsOf({ deliveries }: WebhookBench, exporters: readonly StoredExporter[], handed: readonly HandedOut[]) {
    const found = await Promise.all(handed.map(({ deliveryId }) => deliveries.get(deliveryId)));
    return exporters.map(({ id }) => found.filter((delivery) => delivery?.exporterId === id).length);
}
