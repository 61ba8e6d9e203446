import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EVENT_MARGIN } from '../../../lib/webhooks/deliveries/retention.ts';
import type { NewEvent } from '../../../lib/webhooks/events/new-event.ts';
import { present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, forAll, sampleEvent, type WebhookBench } from './fixture.ts';

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const OTHER = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

/** The traces in which events were published. */
export const traceLaws: Laws<WebhookBench> = {
    async 'keeps the traces of events, whether these are there or not'({ deliveries: { traces } }) {
        const { keep, of } = present(traces);
        const [one, other, unknown] = [randomUUID(), randomUUID(), randomUUID()];
        await keep([
            { eventId: one, traceparent: TRACEPARENT },
            { eventId: other, traceparent: OTHER },
        ]);
        assert.deepEqual(await of([one, unknown]), new Map([[one, TRACEPARENT]]));
        assert.deepEqual(
            await of([other, one]),
            new Map([
                [one, TRACEPARENT],
                [other, OTHER],
            ]),
        );
        assert.deepEqual(await of([]), new Map());
    },

    async 'keeps the first trace of an event'({ deliveries: { traces } }) {
        const { keep, of } = present(traces);
        const eventId = randomUUID();
        await keep([{ eventId, traceparent: TRACEPARENT }]);
        await keep([{ eventId, traceparent: OTHER }]);
        assert.deepEqual(await of([eventId]), new Map([[eventId, TRACEPARENT]]));
    },
};

/** Traces that {@link TraceStore.keptByAccept} says are kept with their events. */
export const acceptedTraceLaws: Laws<WebhookBench> = {
    async 'keeps the traces of events in the statement that accepts them'(bench) {
        const { deliveries } = bench;
        const { of } = present(deliveries.traces);
        await bench.addExporter();
        const { idempotent = false, ordered = false } = deliveries;
        const keyed = (): Partial<NewEvent> => (idempotent ? { idempotency: { key: randomUUID(), digest: 'x' } } : {});
        const inOrder = (): Partial<NewEvent> => (ordered ? { orderKey: randomUUID() } : {});
        for (const more of [() => ({}), keyed, inOrder, () => ({ ...keyed(), ...inOrder() })]) {
            for (const options of [{}, { lockTimeout: 0 }, { lockTimeout: 1_000 }]) {
                const newEvent = (): NewEvent => ({ ...forAll(sampleEvent()), ...more() });
                const alone = { ...newEvent(), traceparent: TRACEPARENT };
                const [first, other, untraced] = [
                    { ...newEvent(), traceparent: TRACEPARENT },
                    { ...newEvent(), traceparent: OTHER },
                    newEvent(),
                ];
                assert.equal((await deliveries.accept([alone], options))[0]?.deliveries.length, 1);
                const accepted = await deliveries.accept([first, untraced, other], options);
                assert.deepEqual(
                    accepted.map(({ eventId, deliveries: { length } }) => [eventId, length]),
                    [first, untraced, other].map(({ event }) => [event.id, 1]),
                );
                assert.deepEqual(
                    await of([alone, first, other, untraced].map(({ event }) => event.id)),
                    new Map([
                        [alone.event.id, TRACEPARENT],
                        [first.event.id, TRACEPARENT],
                        [other.event.id, OTHER],
                    ]),
                );
            }
        }
    },

    async 'keeps the first trace of an event that is accepted'(bench) {
        const { accept, traces } = bench.deliveries;
        const event = sampleEvent();
        await present(traces).keep([{ eventId: event.id, traceparent: TRACEPARENT }]);
        await accept([{ ...forAll(event), traceparent: OTHER }]);
        assert.deepEqual(await present(traces).of([event.id]), new Map([[event.id, TRACEPARENT]]));
    },
};

const DAY = 24 * 60 * 60_000;

/** How long traces are kept. */
export const retainedTraceLaws: Laws<WebhookBench> = {
    async 'removes a trace when an event of its age without deliveries is removed'(bench) {
        const { keep, of } = present(bench.deliveries.traces);
        const eventId = randomUUID();
        await bench.setTime(at(0));
        await keep([{ eventId, traceparent: TRACEPARENT }]);
        await bench.setTime(at(DAY + EVENT_MARGIN));
        await expire(bench);
        assert.equal((await of([eventId])).size, 1);
        await bench.setTime(at(DAY + EVENT_MARGIN + 1));
        await expire(bench);
        assert.equal((await of([eventId])).size, 0);
    },
};

async function expire({ deliveries: { retention } }: WebhookBench): Promise<void> {
    for await (const _ of present(retention).expire(DAY)) {
        // Each step removes something of its own.
    }
}
