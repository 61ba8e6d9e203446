import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { NewEvent } from '../../../lib/webhooks/store.ts';
import type { Laws } from '../announce.ts';
import { addExporter, at, claim, dispatchedIds, only, publishTest, sampleEvent, type WebhookStores } from './fixture.ts';

const INVESTIGATIONS: NewEvent['recipients'] = { types: ['investigation'] };

/** Events as they are accepted. */
export const acceptanceLaws: Laws<WebhookStores> = {
    async 'stores a pending delivery for every running exporter of the types'(stores) {
        const first = await addExporter(stores, { collector: 'west' });
        const second = await addExporter(stores, { type: 'investigation_legacy', createdAt: at(1) });
        await addExporter(stores, { type: 'investigation_legacy_and_library' });
        await addExporter(stores, { state: 'stopped' });

        const event = sampleEvent({ createdAt: at(5) });
        const recipients = { types: ['investigation_legacy', 'investigation'] } as const;
        const accepted = only(await stores.deliveries.accept([{ event, recipients }]));
        assert.equal(accepted.eventId, event.id);
        assert.equal(new Set(accepted.deliveries).size, 2);

        const stored = await Promise.all(accepted.deliveries.map((id) => stores.deliveries.get(id)));
        const expected = [first, second].map((exporter, index) => ({
            id: accepted.deliveries[index],
            eventId: event.id,
            kind: event.kind,
            exporterId: exporter.id,
            collector: exporter.collector,
            state: 'pending',
            attempts: 0,
            dueAt: at(5),
            createdAt: at(5),
            finishedAt: null,
            lastCode: null,
        }));
        assert.deepEqual(stored, expected);
    },

    async 'accepts an event that nobody receives'(stores) {
        const event = sampleEvent();
        const newEvents = [{ event, recipients: INVESTIGATIONS }];
        assert.deepEqual(await stores.deliveries.accept(newEvents), [{ eventId: event.id, deliveries: [] }]);
        await assert.rejects(stores.deliveries.accept(newEvents), { code: 'CONFLICT' });
    },

    async 'stores a test for a stopped exporter'(stores) {
        const { id } = await addExporter(stores, { state: 'stopped' });
        await addExporter(stores);
        const delivery = await stores.deliveries.get(await publishTest(stores, id));
        assert.deepEqual([delivery?.exporterId, delivery?.kind, delivery?.state], [id, 'test', 'pending']);
    },

    async 'answers in the order of the events'(stores) {
        const { id } = await addExporter(stores);
        const newEvents: NewEvent[] = [
            { event: sampleEvent({ createdAt: at(9) }), recipients: INVESTIGATIONS },
            { event: sampleEvent(), recipients: { types: ['investigation_legacy'] } },
            { event: sampleEvent({ createdAt: at(1) }), recipients: { exporterId: id } },
            { event: sampleEvent(), recipients: INVESTIGATIONS },
        ];
        const accepted = await stores.deliveries.accept(newEvents);
        assert.deepEqual(
            accepted.map(({ eventId, deliveries }) => [eventId, deliveries.length]),
            newEvents.map(({ event }, index) => [event.id, index === 1 ? 0 : 1]),
        );
        const newestFirst = (await stores.deliveries.list({ limit: 9 })).map(({ id }) => id);
        assert.deepEqual(
            newestFirst.reverse(),
            accepted.flatMap(({ deliveries }) => deliveries),
        );
    },

    async 'stores nothing when one of the named exporters does not exist'(stores) {
        const removed = await addExporter(stores);
        await stores.exporters.remove(removed.id, at(0));
        await addExporter(stores);
        const event = sampleEvent();

        for (const exporterId of [removed.id, randomUUID(), 'no-uuid']) {
            const newEvents = [
                { event, recipients: INVESTIGATIONS },
                { event: sampleEvent(), recipients: { exporterId } },
            ];
            await assert.rejects(stores.deliveries.accept(newEvents), { code: 'NOT_FOUND' });
        }
        assert.deepEqual(await stores.deliveries.list({ limit: 9 }), []);
        assert.equal((await stores.deliveries.accept([{ event, recipients: INVESTIGATIONS }])).length, 1, 'the event id is still free');
    },

    async 'stores nothing when one of the event ids is taken'(stores) {
        await addExporter(stores);
        const [taken, fresh] = [sampleEvent(), sampleEvent()];
        await stores.deliveries.accept([{ event: taken, recipients: INVESTIGATIONS }]);

        for (const events of [
            [fresh, taken],
            [fresh, fresh],
        ]) {
            const newEvents = events.map((event) => ({ event, recipients: INVESTIGATIONS }));
            await assert.rejects(stores.deliveries.accept(newEvents), { code: 'CONFLICT' });
        }
        assert.equal((await stores.deliveries.list({ limit: 9 })).length, 1);
        assert.equal(
            (await stores.deliveries.accept([{ event: fresh, recipients: INVESTIGATIONS }])).length,
            1,
            'the other id is still free',
        );
    },

    async 'accepts one of many events with the same id'(stores) {
        await addExporter(stores);
        const event = sampleEvent();
        const results = await Promise.allSettled(
            Array.from({ length: 10 }, () => stores.deliveries.accept([{ event, recipients: INVESTIGATIONS }])),
        );
        const refused = results.filter((result) => result.status === 'rejected');
        assert.deepEqual(
            refused.map(({ reason }) => reason.code),
            Array(9).fill('CONFLICT'),
        );
        assert.equal((await stores.deliveries.list({ limit: 20 })).length, 1);
    },

    async 'keeps bodies exactly'(stores) {
        await addExporter(stores);
        const bodies = [
            '',
            'not { even JSON',
            JSON.stringify({ escapes: '"\\/\b\f\n\r\t\u0000\u001f\u007f', lone: '\ud83d', pair: '🦉𝒳', line: '\u2028\u2029' }),
            '{"a":"\\u0000\\ud83d\\u00e9\\/", "order":1, "order":2 , "n":1.0e+2}',
            '\u2028\u2029\ufeff\u00a0🦉 \\ \\\\ \' " $1 {} \r\n\t',
            `{"large":"${'é\\n'.repeat(350_000)}"}`,
        ];
        const accepted = await stores.deliveries.accept(
            bodies.map((body): NewEvent => ({ event: sampleEvent({ body }), recipients: INVESTIGATIONS })),
        );
        const ids = await dispatchedIds(stores);
        const claims = await claim(
            stores,
            accepted.flatMap(({ deliveries }) => deliveries),
        );
        assert.equal(ids.length, bodies.length);
        for (const [index, body] of bodies.entries()) {
            assert.ok(claims[index]?.event.body === body, `body ${index} came back changed`);
        }
    },

    async 'does nothing when given nothing'({ deliveries }) {
        assert.deepEqual([await deliveries.accept([]), await deliveries.claim([]), await deliveries.recordOutcomes([])], [[], [], []]);
    },
};

/** What a store does that joins transactions of the application. */
export const transactionLaws: Laws<Required<WebhookStores>> = {
    async 'joins a transaction of the application'(stores) {
        const exporter = await addExporter(stores);
        const event = sampleEvent();
        for (const [end, receivers] of [
            ['rollback', []],
            ['commit', [exporter.id]],
        ] as const) {
            const host = await stores.begin();
            try {
                only(await stores.deliveries.accept([{ event, recipients: INVESTIGATIONS }], { tx: host.tx }));
            } finally {
                await host[end]();
            }
            const stored = await stores.deliveries.list({ limit: 9 });
            assert.deepEqual(
                stored.map(({ exporterId }) => exporterId),
                receivers,
                `after the ${end}`,
            );
        }
    },

    async 'leaves the transaction of the application usable after a refusal'(stores) {
        await addExporter(stores);
        const event = sampleEvent();
        const host = await stores.begin();
        const accept = (recipients: NewEvent['recipients']) => stores.deliveries.accept([{ event, recipients }], { tx: host.tx });
        try {
            await assert.rejects(accept({ exporterId: randomUUID() }), { code: 'NOT_FOUND' });
            await accept(INVESTIGATIONS);
            await assert.rejects(accept(INVESTIGATIONS), { code: 'CONFLICT' });
        } finally {
            await host.commit();
        }
        assert.equal((await stores.deliveries.list({ limit: 9 })).length, 1);
    },
};

/** What a store does that joins none. */
export const noTransactionLaws: Laws<WebhookStores> = {
    async 'refuses a transaction of the application'(stores) {
        await addExporter(stores);
        const tx = { query: async () => ({ rows: [], rowCount: 0 }) };
        const accepting = stores.deliveries.accept([{ event: sampleEvent(), recipients: INVESTIGATIONS }], { tx });
        await assert.rejects(accepting, { name: 'ScanwireError', code: 'MISCONFIGURED' });
        assert.deepEqual([stores.deliveries.transactions, await stores.deliveries.list({ limit: 9 })], [false, []]);
    },
};
