import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { AttemptFilter } from '../../../lib/webhooks/deliveries/attempt-lists.ts';
import { ids, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, success, type WebhookBench } from './fixture.ts';

const HOUR = 3_600_000;

/** Attempts of many deliveries. */
export const attemptLaws: Laws<WebhookBench> = {
    async 'lists attempts that have ended as those of their deliveries, the newest deliveries first and of each the last attempt'(bench) {
        assert.deepEqual(await listed(bench), []);
        await tried(bench);
        const expected = [];
        for (const { id: deliveryId, eventId, kind, exporterId } of await bench.listed()) {
            for (const attempt of (await bench.deliveries.attempts(deliveryId)).toReversed()) {
                expected.push({ id: `${deliveryId}:${attempt.number}`, ...attempt, deliveryId, eventId, kind, exporterId });
            }
        }
        assert.equal(expected.length, 6);
        assert.deepEqual(await listed(bench), expected);
        await bench.publishAt(at(5 * HOUR));
        assert.equal((await bench.claimDue({ now: at(5 * HOUR) })).length, 1);
        assert.deepEqual(await listed(bench), expected, 'what is under way has not ended');
    },

    async 'lists attempts page by page'(bench) {
        await tried(bench);
        const all = ids(await listed(bench));
        const lists = present(bench.deliveries.attemptLists);
        for (const [index, after] of all.entries()) {
            assert.deepEqual(ids(await lists.list({ after, limit: 2 })), all.slice(index + 1, index + 3));
        }
        for (const after of [randomUUID(), `${randomUUID()}:1`, 'no-uuid:1', `${all[0]}:x`, `${all[0]}.5`, `${all[0]}000000000000`]) {
            assert.deepEqual(await listed(bench, { after }), [], after);
        }
    },

    async 'lists and counts the attempts of an outcome, also of what was delivered in the end'(bench) {
        const { delivered, exhausted } = await tried(bench);
        await assertFound(bench, { outcome: 'connect_refused' }, [`${exhausted}:2`, `${exhausted}:1`, `${delivered}:2`, `${delivered}:1`]);
        await assertFound(bench, { outcome: 'connect_refused', state: 'delivered' }, [`${delivered}:2`, `${delivered}:1`]);
        await assertFound(bench, { outcome: 'timeout' }, []);
        assert.equal((await listed(bench, { outcome: 'delivered' })).length, 2);
    },

    async 'lists and counts the attempts of a span of time, however long ago their deliveries were accepted'(bench) {
        const { delivered, exhausted, young } = await tried(bench);
        await assertFound(bench, { since: at(2 * HOUR) }, [`${young}:1`, `${exhausted}:2`, `${delivered}:3`]);
        await assertFound(bench, { since: at(HOUR), until: at(2 * HOUR) }, [`${exhausted}:1`, `${delivered}:2`]);
        await assertFound(bench, { until: at(HOUR) }, [`${delivered}:1`]);
        await assertFound(bench, { since: at(HOUR), until: at(HOUR) }, []);
        await assertFound(bench, { since: at(9 * HOUR) }, []);
        await assertFound(bench, { since: at(HOUR), outcome: 'connect_refused' }, [`${exhausted}:2`, `${exhausted}:1`, `${delivered}:2`]);
        await assertFound(bench, { since: at(2 * HOUR), after: `${young}:1` }, [`${exhausted}:2`, `${delivered}:3`]);
    },

    async 'lists and counts the attempts of an exporter, a kind, an event and a delivery'(bench) {
        const { delivered, exhausted, young } = await tried(bench);
        const { eventId, exporterId } = present(await bench.deliveries.get(exhausted));
        const ofExhausted = [`${exhausted}:2`, `${exhausted}:1`];
        const ofAll = [`${young}:1`, ...ofExhausted, `${delivered}:3`, `${delivered}:2`, `${delivered}:1`];
        await assertFound(bench, { kind: 'ours' }, ofExhausted);
        await assertFound(bench, { kind: 'theirs' }, []);
        await assertFound(bench, { eventId }, ofExhausted);
        await assertFound(bench, { deliveryId: exhausted }, ofExhausted);
        await assertFound(bench, { deliveryId: exhausted, kind: 'theirs' }, []);
        await assertFound(bench, { exporterId }, ofAll);
        await assertFound(bench, { exporterIds: [exporterId, randomUUID(), 'no-uuid'] }, ofAll);
        await assertFound(bench, { exporterIds: [] }, []);
        await assertFound(bench, { exporterIds: [randomUUID()], exporterId }, []);
        for (const id of [randomUUID(), 'no-uuid']) {
            for (const filter of [{ exporterId: id }, { eventId: id }, { deliveryId: id }]) {
                await assertFound(bench, filter, []);
            }
        }
        const lists = present(bench.deliveries.attemptLists);
        assert.equal(await lists.count({}, 6), 6);
        assert.equal(await lists.count({}, 5), 5);
        assert.deepEqual(ids(await lists.list({ exporterIds: [exporterId], limit: 4 })), ofAll.slice(0, 4));
    },

    async 'lists the newest attempts of more exporters than are asked for'(bench) {
        const exporterIds = [];
        for (const hour of [0, 1, 2, 3]) {
            exporterIds.push((await bench.addExporter()).id);
            await bench.publishAt(at(hour * HOUR));
            const claims = await bench.claimDue({ now: at(hour * HOUR) });
            const outcomes = claims.map((claim, index) =>
                index % 2 === 0 ? failure(claim, 0, { next: { state: 'exhausted' }, health: 'none' }) : success(claim),
            );
            await bench.record(outcomes, at(hour * HOUR));
        }
        const owned = [exporterIds[3], exporterIds[1], exporterIds[0], randomUUID()] as readonly string[];
        const lists = present(bench.deliveries.attemptLists);
        for (const filter of [{}, { outcome: 'connect_refused' }, { since: at(HOUR) }, { outcome: 'delivered' }] as const) {
            const all = (await listed(bench, filter)).filter(({ exporterId }) => owned.includes(exporterId));
            assert.ok(all.length > 2, JSON.stringify(filter));
            for (const limit of [1, 2, 3, all.length]) {
                assert.deepEqual(await lists.list({ ...filter, exporterIds: owned, limit }), all.slice(0, limit), JSON.stringify(filter));
            }
            assert.equal(await lists.count({ ...filter, exporterIds: owned }, 100), all.length, JSON.stringify(filter));
        }
    },
};

/**
 * Three deliveries to one exporter: one that was delivered at its third attempt, after two hours, one that was accepted after an hour and given up at its
 * second an hour later, and one that was accepted then and delivered at once.
 */
async function tried(bench: WebhookBench) {
    await bench.addExporter();
    const delivered = present((await bench.publish())[0]);
    await bench.fail(await bench.claimDue(), at(50), { next: { state: 'pending', delay: HOUR - 50 } });
    const exhausted = present((await bench.publishAt(at(HOUR), { kind: 'ours' }))[0]);
    const again = { next: { state: 'pending', delay: HOUR } } as const;
    await bench.record(
        (await bench.claimDue({ now: at(HOUR) })).map((claim) => failure(claim, 0, { ...again, health: 'none' })),
        at(HOUR),
    );
    const young = present((await bench.publishAt(at(2 * HOUR)))[0]);
    const claims = await bench.claimDue({ now: at(2 * HOUR) });
    await bench.record(
        claims.map((claim) => (claim.deliveryId === exhausted ? failure(claim, 0, { next: { state: 'exhausted' } }) : success(claim))),
        at(2 * HOUR),
    );
    return { delivered, exhausted, young };
}

async function listed(bench: WebhookBench, filter: AttemptFilter = {}) {
    return await present(bench.deliveries.attemptLists).list({ limit: 100, ...filter });
}

async function assertFound(bench: WebhookBench, filter: AttemptFilter, found: readonly string[]): Promise<void> {
    assert.deepEqual(ids(await listed(bench, filter)), found, JSON.stringify(filter));
    assert.equal(await present(bench.deliveries.attemptLists).count(filter, 100), found.length, JSON.stringify(filter));
}
