import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { NewEvent } from '../../../lib/webhooks/events/new-event.ts';
import { ids, only, until } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, forAll, RULES, sampleEvent, type WebhookBench } from './fixture.ts';

/** Events as they are accepted. */
export const acceptanceLaws: Laws<WebhookBench> = {
    async 'stores a pending delivery for every running exporter of the types'(bench) {
        const first = await bench.addExporter({ collector: 'west' });
        const second = await bench.addExporter({ type: 'investigation_legacy', createdAt: at(1) });
        await bench.addExporter({ type: 'investigation_legacy_and_library' });
        await bench.addExporter({ state: 'stopped' });

        const event = sampleEvent();
        await bench.setTime(at(5));
        const recipients = { types: ['investigation_legacy', 'investigation'] } as const;
        const accepted = only(await bench.deliveries.accept([{ event, recipients }]));
        assert.equal(accepted.eventId, event.id);
        assert.equal(new Set(accepted.deliveries).size, 2);

        const stored = await Promise.all(accepted.deliveries.map((id) => bench.deliveries.get(id)));
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

    async 'accepts an event that nobody receives'(bench) {
        const event = sampleEvent();
        const { leftFor = [], ...accepted } = only(await bench.deliveries.accept([forAll(event)]));
        assert.deepEqual({ ...accepted, leftFor }, { eventId: event.id, deliveries: [], handedOut: [], leftFor: [] });
        await assert.rejects(bench.deliveries.accept([forAll(event)]), { code: 'CONFLICT' });
    },

    async 'stores a test for a stopped exporter'(bench) {
        const { id } = await bench.addExporter({ state: 'stopped' });
        await bench.addExporter();
        await bench.assertDelivery(await bench.publishTest(id), { exporterId: id, kind: 'test', state: 'pending' });
    },

    async 'answers in the order of the events'(bench) {
        const { id } = await bench.addExporter();
        const newEvents: NewEvent[] = [
            forAll(sampleEvent()),
            { event: sampleEvent(), recipients: { types: ['investigation_legacy'] } },
            { event: sampleEvent(), recipients: { exporterId: id } },
            forAll(sampleEvent()),
        ];
        const accepted = await bench.deliveries.accept(newEvents);
        assert.deepEqual(
            accepted.map(({ eventId, deliveries }) => [eventId, deliveries.length]),
            newEvents.map(({ event }, index) => [event.id, index === 1 ? 0 : 1]),
        );
        const oldestFirst = accepted.flatMap(({ deliveries }) => deliveries);
        assert.deepEqual(ids(await bench.listed()), oldestFirst.toReversed());
    },

    async 'stores nothing when one of the named exporters does not exist'(bench) {
        const removed = await bench.addExporter();
        await bench.remove(removed.id, at(0));
        await bench.addExporter();
        const event = sampleEvent();

        for (const exporterId of [removed.id, randomUUID(), 'no-uuid']) {
            const newEvents = [forAll(event), { event: sampleEvent(), recipients: { exporterId } }];
            await assert.rejects(bench.deliveries.accept(newEvents), { code: 'NOT_FOUND' });
        }
        assert.deepEqual(await bench.listed(), []);
        assert.equal((await bench.deliveries.accept([forAll(event)])).length, 1, 'the event id is still free');
    },

    async 'stores nothing when one of the event ids is taken'(bench) {
        await bench.addExporter();
        const [taken, fresh] = [sampleEvent(), sampleEvent()];
        await bench.deliveries.accept([forAll(taken)]);

        for (const event of [taken, fresh]) {
            await assert.rejects(bench.deliveries.accept([forAll(fresh), forAll(event)]), { code: 'CONFLICT' });
        }
        assert.equal((await bench.listed()).length, 1);
        assert.equal((await bench.deliveries.accept([forAll(fresh)])).length, 1, 'the other id is still free');
    },

    async 'accepts one of many events with the same id'(bench) {
        await bench.addExporter();
        const event = sampleEvent();
        const results = await Promise.allSettled(Array.from({ length: 10 }, () => bench.deliveries.accept([forAll(event)])));
        const codes = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.code] : []));
        assert.deepEqual(codes, Array(9).fill('CONFLICT'));
        assert.equal((await bench.listed()).length, 1);
    },

    async 'names the exporters that have no room, if any'(bench) {
        const { id } = await bench.addExporter();
        const handOut = { window: 1, breakerAfter: 3, beginWithin: 10_000 };
        const accept = async () => only(await bench.deliveries.accept([forAll(sampleEvent())], { handOut }));
        const [first, second] = [await accept(), await accept()];
        assert.deepEqual([first.handedOut.length, second.handedOut.length], [1, 0]);
        assert.deepEqual([first.leftFor ?? [], second.leftFor ?? [id]], [[], [id]]);
        const stored = only(await bench.deliveries.accept([forAll(sampleEvent())]));
        assert.deepEqual(stored.leftFor ?? [id], [id], 'what is to wait for dispatch is left as well');
    },

    async 'keeps bodies exactly'(bench) {
        await bench.addExporter();
        const bodies = [
            '',
            'not { even JSON',
            JSON.stringify({ escapes: '"\\/\b\f\n\r\t\u0000\u001f\u007f', lone: '\ud83d', pair: '🦉𝒳', line: '\u2028\u2029' }),
            '{"a":"\\u0000\\ud83d\\u00e9\\/", "order":1, "order":2 , "n":1.0e+2}',
            '\u2028\u2029\ufeff\u00a0🦉 \\ \\\\ \' " $1 {} \r\n\t',
            `{"large":"${'é\\n'.repeat(350_000)}"}`,
        ];
        const published = await bench.publish(...bodies.map((body) => ({ body })));
        await bench.dispatch();
        const claims = await bench.claim(published);
        assert.equal(claims.length, bodies.length);
        for (const [index, body] of bodies.entries()) {
            assert.ok(claims[index]?.event.body === body, `body ${index} came back changed`);
        }
    },

    async 'does nothing when given nothing'({ deliveries }) {
        assert.deepEqual(
            [await deliveries.accept([]), await deliveries.claim([], null), await deliveries.recordOutcomes([], RULES)],
            [[], [], []],
        );
    },
};

/** What a store does that joins transactions of the application. */
export const transactionLaws: Laws<WebhookBench> = {
    async 'joins a transaction of the application'(bench) {
        const exporter = await bench.addExporter();
        const event = sampleEvent();
        for (const [end, receivers] of [
            ['rollback', []],
            ['commit', [exporter.id]],
        ] as const) {
            const host = await bench.begin();
            try {
                only(await bench.deliveries.accept([forAll(event)], { tx: host.tx }));
            } finally {
                await host[end]();
            }
            const stored = (await bench.listed()).map(({ exporterId }) => exporterId);
            assert.deepEqual(stored, receivers, `after the ${end}`);
        }
    },

    async 'hands nothing out in a transaction of the application'(bench) {
        await bench.addExporter();
        const host = await bench.begin();
        try {
            const handOut = { window: 10, breakerAfter: RULES.after, beginWithin: 1000 };
            const [accepted] = await bench.deliveries.accept([forAll(sampleEvent())], { tx: host.tx, handOut });
            assert.deepEqual(accepted?.handedOut, []);
        } finally {
            await host.commit();
        }
        assert.deepEqual(
            (await bench.listed()).map(({ state }) => state),
            ['pending'],
        );
    },

    async 'leaves the transaction of the application usable after a refusal'(bench) {
        await bench.addExporter();
        const event = sampleEvent();
        const host = await bench.begin();
        const accept = (newEvent: NewEvent) => bench.deliveries.accept([newEvent], { tx: host.tx });
        try {
            await assert.rejects(accept({ event, recipients: { exporterId: randomUUID() } }), { code: 'NOT_FOUND' });
            await accept(forAll(event));
            await assert.rejects(accept(forAll(event)), { code: 'CONFLICT' });
        } finally {
            await host.commit();
        }
        assert.equal((await bench.listed()).length, 1);
    },
};

/** What a store does by which the commits of the application's transactions are heard. */
export const notificationLaws: Laws<WebhookBench> = {
    async 'makes a commit heard, and not before'(bench) {
        await bench.addExporter();
        const { heard, close } = await bench.listen();
        try {
            await bench.publishIn('commit', 1, () => assert.equal(heard(), 0, 'before the commit'));
            await until(() => heard() > 0, 5_000);
        } finally {
            await close();
        }
    },

    async 'makes nothing heard of a rollback'(bench) {
        await bench.addExporter();
        const { heard, close } = await bench.listen();
        try {
            await bench.publishIn('rollback');
            await bench.publishIn('commit');
            await until(() => heard() > 0, 5_000);
        } finally {
            await close();
        }
        assert.equal(heard(), 1, 'the commit, and nothing else by the end');
    },

    async 'makes the commit of many events heard once'(bench) {
        await bench.addExporter();
        const { heard, close } = await bench.listen();
        try {
            await bench.publishIn('commit', 5);
            await bench.publishIn('commit');
            await until(() => heard() > 1, 5_000);
            assert.equal(heard(), 2);
        } finally {
            await close();
        }
    },

    async 'makes a commit heard by somebody who listens still'(bench) {
        await bench.addExporter();
        const first = await bench.listen();
        const second = await bench.listen();
        try {
            await first.close();
            const before = first.heard();
            await bench.publishIn('commit');
            await until(() => second.heard() > 0, 5_000);
            assert.equal(first.heard(), before, 'one that is closed hears nothing');
        } finally {
            await second.close();
        }
    },

    async 'hands out what was committed and not heard of'(bench) {
        await bench.addExporter();
        await bench.setTime(at(0));
        const published = await bench.publishIn('commit');
        assert.equal(published.length, 1);
        assert.deepEqual(await bench.dispatchedIds({ now: at(0) }), published);
    },
};

/** What a store does that joins none. */
export const noTransactionLaws: Laws<WebhookBench> = {
    async 'refuses a transaction of the application'(bench) {
        await bench.addExporter();
        const tx = { query: async () => ({ rows: [], rowCount: 0 }) };
        const accepting = bench.deliveries.accept([forAll(sampleEvent())], { tx });
        await assert.rejects(accepting, { name: 'ScanwireError', code: 'MISCONFIGURED' });
        assert.deepEqual([bench.deliveries.transactions, await bench.listed()], [false, []]);
    },

    async 'listens for no transactions that it cannot join'({ deliveries }) {
        assert.equal(deliveries.listen, undefined);
    },
};
