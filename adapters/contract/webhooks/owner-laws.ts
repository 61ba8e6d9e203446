import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Claim, RecordedOutcome } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { EVENT_MARGIN } from '../../../lib/webhooks/deliveries/retention.ts';
import type { NewEvent } from '../../../lib/webhooks/events/new-event.ts';
import { present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, forAll, sampleEvent, success, type WebhookBench } from './fixture.ts';

const STAYS = { code: 'CONFLICT', field: 'owner' } as const;

/** An event of an owner for those exporters that have chosen it. */
function ofOwner(owner: string | null, exporterIds: readonly string[], more: Partial<NewEvent> = {}): NewEvent {
    const subscribers = exporterIds.map((exporterId) => ({ exporterId, message: null }));
    return { event: sampleEvent(), recipients: { types: ['investigation'], subscribers }, ...(owner !== null && { owner }), ...more };
}

/** The exporters that one of the events went to. */
async function receivers(bench: WebhookBench, newEvents: readonly NewEvent[]): Promise<readonly string[]> {
    const accepted = await bench.deliveries.accept(newEvents);
    const rows = await Promise.all(accepted.flatMap(({ deliveries }) => deliveries).map((id) => bench.deliveries.get(id)));
    return rows.map((row) => present(row).exporterId);
}

/** What may become of a claim that is kept with its exporter. */
const ENDS: Readonly<Record<string, (claim: Claim) => readonly RecordedOutcome[]>> = {
    'being sent': () => [],
    delivered: (claim) => [success(claim)],
    'tried again': (claim) => [failure(claim, 1_000)],
    exhausted: (claim) => [failure(claim, 0, { next: { state: 'exhausted' } })],
};

async function assertOwnerStays(bench: WebhookBench, id: string, what: string): Promise<void> {
    const before = present(await bench.exporters.get(id));
    await assert.rejects(bench.update(id, { owner: 'theirs', name: 'x' }, at(60)), STAYS, what);
    assert.deepEqual(await bench.exporters.get(id), before, what);
    assert.equal((await bench.update(id, { owner: before.owner, name: what }, at(60))).name, what, 'the same is no other');
}

/** Whose an exporter is, what it then gets, and when that may change. */
export const ownerLaws: Laws<WebhookBench> = {
    async 'stores nothing of another owner for an exporter, whoever has chosen it'(bench) {
        const ours = await bench.addExporter({ owner: 'ours' });
        const deployment = await bench.addExporter({ kinds: ['idr_*'], createdAt: at(1) });
        const both = [ours.id, deployment.id];
        for (const more of [{}, { orderKey: 'key' }, { idempotency: { key: 'one', digest: 'one' } }]) {
            const newEvent = (owner: string | null) => ofOwner(owner, both, { ...more, event: sampleEvent() });
            assert.deepEqual(await receivers(bench, [newEvent('theirs')]), [deployment.id], JSON.stringify(more));
            assert.deepEqual(await receivers(bench, [newEvent(null)]), [deployment.id], JSON.stringify(more));
        }
        assert.deepEqual(await receivers(bench, [ofOwner('ours', both)]), both);
        assert.deepEqual(await receivers(bench, [ofOwner('theirs', both), ofOwner('ours', both)]), [deployment.id, ...both]);
    },

    async 'changes the owner of an exporter that was sent nothing but tests'(bench) {
        const { id } = await bench.addExporter();
        const generations = [];
        for (const [index, owner] of ['ours', 'theirs', null].entries()) {
            await bench.publishTest(id, at(index));
            const [claim] = await bench.claimDue({ now: at(index) });
            await bench.record([success(present(claim), { health: 'none' })], at(index));
            generations.push(claim?.generation);

            const { revision } = present(await bench.exporters.subscribers?.(), 'subscribers()');
            const changed = await bench.update(id, { owner, name: `${index}` }, at(index));
            assert.deepEqual([changed.owner, changed.name], [owner, `${index}`]);
            assert.deepEqual(await bench.exporters.get(id), changed);
            await assert.rejects(bench.deliveries.accept([forAll(sampleEvent())], { revision }), { code: 'CONFLICT', field: 'revision' });
        }
        assert.deepEqual(generations, [...new Set(generations)], 'what was read before is old');
    },

    async 'keeps the owner of an exporter while what it was sent is kept'(bench) {
        const { id } = await bench.addExporter({ owner: 'ours' });
        for (const [what, end] of Object.entries(ENDS)) {
            const other = await bench.addExporter();
            await bench.publish();
            await assertOwnerStays(bench, other.id, `${what}, not yet`);
            const [claim] = await bench.claimDue();
            await bench.record(end(present(claim)));
            await assertOwnerStays(bench, other.id, what);
            await bench.remove(other.id, at(60));
        }
        assert.equal((await bench.update(id, { owner: 'theirs' }, at(60))).owner, 'theirs', 'one that got none of it');
    },

    async 'changes an exporter only while it has the expected owner'(bench) {
        const { id } = await bench.addExporter({ owner: 'ours' });
        for (const expectedOwner of ['theirs', null]) {
            await assert.rejects(bench.update(id, { name: 'x', expectedOwner }, at(1)), { code: 'CONFLICT', field: undefined });
        }
        await bench.update(id, { owner: null, expectedOwner: 'ours' }, at(1));
        await assert.rejects(bench.update(id, { name: 'x', expectedOwner: 'ours' }, at(1)), { code: 'CONFLICT', field: undefined });
        assert.equal((await bench.update(id, { name: 'y', expectedOwner: null }, at(1))).name, 'y');
    },
};

/** The same of what is held for it. */
export const heldOwnerLaws: Laws<WebhookBench> = {
    async 'keeps the owner of an exporter while something is held for it'(bench) {
        const { id } = await bench.addExporter({ owner: 'ours', state: 'stopped', stopReason: 'The receiver answered 410 Gone' });
        await bench.deliveries.accept([ofOwner('ours', [id])]);
        await assertOwnerStays(bench, id, 'held');
    },
};

/** The same of its replays. */
export const replayedOwnerLaws: Laws<WebhookBench> = {
    async 'keeps the owner of an exporter while a replay of it is kept'(bench) {
        const { id } = await bench.addExporter();
        const other = await bench.addExporter({ createdAt: at(1) });
        await present(bench.deliveries.replays).plan({ id: randomUUID(), exporterId: id, failedSince: at(0), rate: 1 });
        await assert.rejects(bench.update(id, { owner: 'theirs' }, at(1)), STAYS);
        assert.equal((await bench.update(other.id, { owner: 'theirs' }, at(1))).owner, 'theirs');
    },
};

/** The same once all of that is removed. */
export const retainedOwnerLaws: Laws<WebhookBench> = {
    async 'changes the owner of an exporter once what it was sent is removed'(bench) {
        const claim = await bench.claimOne();
        await bench.record([success(claim)], at(1));
        const later = at(10 * EVENT_MARGIN);
        await bench.setTime(later);
        for await (const _ of present(bench.deliveries.retention).expire(EVENT_MARGIN)) {
            // It removes what there is.
        }
        assert.equal((await bench.update(claim.exporter.id, { owner: 'theirs' }, later)).owner, 'theirs');
    },
};
