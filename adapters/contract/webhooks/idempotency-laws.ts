import assert from 'node:assert/strict';
import type { IdempotencyKey, NewEvent } from '../../../lib/webhooks/events/new-event.ts';
import { ids, inParallel, only, present, unlessRefused } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { forAll, sampleEvent, type WebhookBench } from './fixture.ts';

const KEY: IdempotencyKey = { key: 'order 7', digest: 'of its body' };

/** An event of its own under a key of the caller's, for all exporters. */
function keyed(idempotency: IdempotencyKey = KEY, overrides: Partial<NewEvent> = {}): NewEvent {
    return { ...forAll(sampleEvent()), idempotency, ...overrides };
}

/** Keys of the caller's, under which an event is accepted once. */
export const idempotencyLaws: Laws<WebhookBench> = {
    async 'answers a repeated key with what was accepted before'(bench) {
        await bench.addExporter();
        await bench.addExporter();
        const first = only(await bench.deliveries.accept([keyed()]));
        await bench.addExporter();
        const [other, again] = await bench.deliveries.accept([forAll(sampleEvent()), keyed()]);
        assert.equal(other?.deliveries.length, 3);
        assert.deepEqual([again?.eventId, again?.deliveries, again?.handedOut], [first.eventId, first.deliveries, []]);
        assert.deepEqual(again?.leftFor ?? [], [], 'nothing of it is left');
        const alone = only(await bench.deliveries.accept([keyed()]));
        assert.deepEqual(alone.leftFor ?? [], []);
        assert.equal((await bench.listed()).length, 5);
    },

    async 'answers a repeated key when nobody wanted the event'(bench) {
        const first = only(await bench.deliveries.accept([keyed()]));
        await bench.addExporter();
        assert.deepEqual(await bench.deliveries.accept([keyed()]), [{ ...first, deliveries: [] }]);
    },

    async 'keeps the keys of owners apart'(bench) {
        await bench.addExporter();
        const owners = [null, 'one', 'other', ''];
        const accepted = await bench.deliveries.accept(owners.slice(0, 3).map((owner) => keyed(KEY, { owner })));
        assert.equal(new Set(accepted.map(({ eventId }) => eventId)).size, 3);
        const [again] = await bench.deliveries.accept([keyed(KEY, { owner: 'one' })]);
        assert.equal(again?.eventId, accepted[1]?.eventId);
    },

    async 'stores nothing when a key stands for another event'(bench) {
        await bench.addExporter();
        await bench.deliveries.accept([keyed()]);
        const fresh = keyed({ ...KEY, key: 'another' });
        const refused = bench.deliveries.accept([forAll(sampleEvent()), fresh, keyed({ ...KEY, digest: 'of another' })]);
        await assert.rejects(refused, { code: 'CONFLICT', field: 'idempotencyKey' });
        assert.equal((await bench.listed()).length, 1);
        const [accepted] = await bench.deliveries.accept([keyed({ ...KEY, key: 'another' })]);
        assert.equal(accepted?.deliveries.length, 1, 'the other key is still free');
    },

    async 'keeps no key of an event that was there before without it'(bench) {
        await bench.addExporter();
        const stored = sampleEvent();
        await bench.deliveries.accept([forAll(stored)]);
        for (const others of [[], [forAll(sampleEvent())]]) {
            const key = { ...KEY, key: `beside ${others.length}` };
            await assert.rejects(bench.deliveries.accept([keyed(key, { event: stored }), ...others]), { code: 'CONFLICT' });
            const accepted = only(await bench.deliveries.accept([keyed(key)]));
            assert.notEqual(accepted.eventId, stored.id);
            assert.equal(accepted.deliveries.length, 1);
        }
    },

    async 'accepts one of many under the same key'(bench) {
        await bench.addExporter();
        const all = (await inParallel(10, () => bench.deliveries.accept([keyed()]))).flat();
        assert.equal(new Set(all.map(({ eventId }) => eventId)).size, 1);
        const listed = ids(await bench.listed());
        assert.deepEqual(
            all.map(({ deliveries }) => deliveries),
            Array(10).fill(listed),
        );
    },
};

/** The same in a transaction of the application. */
export const joinedIdempotencyLaws: Laws<WebhookBench> = {
    async 'frees a key with the transaction of the application that does not commit'(bench) {
        await bench.addExporter();
        const host = await bench.begin();
        try {
            await bench.deliveries.accept([keyed()], { tx: host.tx });
        } finally {
            await host.rollback();
        }
        const [accepted] = await bench.deliveries.accept([keyed()]);
        assert.equal(present(accepted).deliveries.length, 1);
        assert.equal((await bench.listed()).length, 1);
    },
};

/** What a store does that heeds no keys. It may refuse events that have one, which it is never given. */
export const notIdempotentLaws: Laws<WebhookBench> = {
    async 'refuses a key, or accepts an event under a repeated one as any other, where it heeds none'(bench) {
        await bench.addExporter();
        const first = await unlessRefused(bench.deliveries.accept([keyed()]));
        // To refuse only a key that is repeated is to heed keys.
        const accepted = first === null ? [] : [...first, ...(await bench.deliveries.accept([keyed()]))];
        assert.equal(new Set(accepted.map(({ eventId }) => eventId)).size, accepted.length);
        assert.equal((await bench.listed()).length, accepted.length);
    },
};
