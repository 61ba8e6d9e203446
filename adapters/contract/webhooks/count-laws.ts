import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { DeliveryFilter } from '../../../lib/webhooks/deliveries/deliveries.ts';
import { assertFields, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, success, type WebhookBench } from './fixture.ts';

/** Deliveries that are counted however many they are. */
export const countLaws: Laws<WebhookBench> = {
    async 'counts all that have ended, and what has not up to a number'(bench) {
        const { id } = await bench.addExporter();
        await bench.publish({}, {}, { kind: 'ours' }, {});
        const claims = await bench.claimDue({ window: 100 });
        await bench.record(
            claims.map((claim, index) => (index === 3 ? failure(claim, 0, { next: { state: 'exhausted' } }) : success(claim))),
        );
        for (const [filter, count] of [
            [{}, 4],
            [{ state: 'delivered' }, 3],
            [{ state: 'delivered', exporterId: id, kind: 'ours', outcome: 'delivered' }, 1],
            [{ outcome: 'connect_refused' }, 1],
            [{ exporterId: randomUUID() }, 0],
            [{ exporterId: 'no-uuid' }, 0],
            [{ kind: 'theirs' }, 0],
        ] as const) {
            assert.equal(await bench.deliveries.count(filter, 2), count, JSON.stringify(filter));
        }
        assert.equal(await bench.deliveries.count({ since: at(-1_000_000_000) }, 2), 2, 'a time is counted one by one');
        await bench.publish({});
        assert.equal(await bench.deliveries.count({}, 2), 5);
        await bench.publish({});
        assert.equal(await bench.deliveries.count({}, 2), 2);
        assert.equal(await bench.deliveries.count({ state: 'pending' }, 1), 1);
    },

    async 'counts what has ended as it would list it, whatever becomes of it'(bench) {
        const [one, other] = [await bench.addExporter(), await bench.addExporter({ createdAt: at(1) })];
        await bench.publish({}, { kind: 'ours' }, {});
        await assertCountsAsListed(bench);
        const claims = await bench.claimDue({ window: 100 });
        const [first, second, third, ...rest] = claims.map((claim) => claim.deliveryId);
        const ended = { next: { state: 'exhausted' } } as const;
        await bench.record(claims.map((claim, index) => (index < 4 ? success(claim) : failure(claim, 0, index === 4 ? ended : {}))));
        await assertCountsAsListed(bench);
        await bench.publishAt(at(100), {}, { kind: 'ours' });
        await assertCountsAsListed(bench);
        await bench.replay(present(first), at(200));
        await assertCountsAsListed(bench);
        await bench.replay(present(rest.at(-2)), at(200));
        await assertCountsAsListed(bench);
        await bench.deliveries.erase(present(await bench.deliveries.get(present(second))).eventId);
        await bench.deliveries.erase(present(await bench.deliveries.get(present(third))).eventId);
        await assertCountsAsListed(bench);
        await bench.remove(other.id, at(300));
        await assertCountsAsListed(bench);
        await bench.remove(one.id, at(300));
        await assertCountsAsListed(bench);
    },
};

/** The same of what was discarded. */
export const discardedCountLaws: Laws<WebhookBench> = {
    async 'counts what was discarded as it would list it'(bench) {
        await bench.addExporter();
        const [first, second] = await bench.publish({}, {}, {});
        await assertCountsAsListed(bench);
        await discard(bench, present(first));
        await bench.fail(await bench.claimDue({ limit: 1 }), at(0), { next: { state: 'exhausted' } });
        await assertCountsAsListed(bench);
        await discard(bench, present(second));
        await assertCountsAsListed(bench);
    },
};

/** What a store does that keeps no counts. */
export const notKeepingCountsLaws: Laws<WebhookBench> = {
    async 'counts no further than to the number where it keeps no counts'(bench) {
        await bench.addExporter();
        await bench.publish({}, {}, {});
        await bench.record((await bench.claimDue()).map((claim) => success(claim)));
        for (const filter of [{}, { state: 'delivered' }] as const) {
            assert.equal(await bench.deliveries.count(filter, 2), 2);
            assert.equal(await bench.deliveries.count(filter, 9), 3);
        }
    },
};

async function discard({ deliveries }: WebhookBench, id: string): Promise<void> {
    assertFields(await deliveries.discard?.(id), { id, state: 'cancelled' });
}

/** By every state, outcome, kind and exporter that any has. */
async function assertCountsAsListed(bench: WebhookBench): Promise<void> {
    const all = await bench.listed();
    const filters: readonly DeliveryFilter[] = all.flatMap(({ state, lastCode, kind, exporterId }) => {
        const outcome = lastCode === null ? {} : { outcome: lastCode };
        return [{}, { state }, outcome, { kind }, { exporterId }, { state, kind, exporterId, ...outcome }];
    });
    for (const filter of filters) {
        assert.equal(await bench.deliveries.count(filter, 100), (await bench.listed(filter)).length, JSON.stringify(filter));
    }
}
