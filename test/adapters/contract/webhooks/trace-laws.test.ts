import t from 'tap';
import { acceptedTraceLaws, retainedTraceLaws, traceLaws } from '../../../../adapters/contract/webhooks/trace-laws.ts';
import type { RetentionStore } from '../../../../lib/webhooks/deliveries/retention.ts';
import type { TraceStore } from '../../../../lib/webhooks/observing/trace-store.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

/** Stores whose traces are wrong in some way. */
function tracing(change: (honest: TraceStore) => Partial<TraceStore>): Mutant {
    return (_, deliveries) => {
        const honest = deliveries.traces as TraceStore;
        return { deliveries: { traces: { ...honest, ...change(honest) } } };
    };
}

/** Keeps the last trace of each event. */
function overwriting(): Partial<TraceStore> {
    const kept = new Map<string, string>();
    return {
        async keep(traces) {
            for (const { eventId, traceparent } of traces) {
                kept.set(eventId, traceparent);
            }
        },
        of: async (eventIds) => new Map(eventIds.flatMap((id) => (kept.has(id) ? [[id, kept.get(id) as string]] : []))),
    };
}

const MUTANTS: Mutants = {
    'keeps the traces of events, whether these are there or not': tracing((honest) => ({ keep: (traces) => honest.keep(traces.slice(1)) })),
    'keeps the first trace of an event': tracing(overwriting),
};

const RETAINED_MUTANTS: Mutants = {
    'removes a trace when an event of its age without deliveries is removed': (_, deliveries) => {
        const honest = deliveries.retention as RetentionStore;
        return { deliveries: { retention: { ...honest, expire: (keepFor) => honest.expire(keepFor + 1) } } };
    },
};

const ACCEPTED_MUTANTS: Mutants = {
    'keeps the traces of events in the statement that accepts them': (_, deliveries) => ({
        deliveries: {
            accept: (newEvents, options) =>
                deliveries.accept(
                    newEvents.map((one, index) => (index === 0 ? one : { ...one, traceparent: newEvents[0]?.traceparent as string })),
                    options,
                ),
        },
    }),
    'keeps the first trace of an event that is accepted': (_, deliveries) => {
        const honest = deliveries.traces as TraceStore;
        const accepted = new Map<string, string>();
        return {
            deliveries: {
                accept(newEvents, options) {
                    for (const { event, traceparent = '' } of newEvents) {
                        accepted.set(event.id, traceparent);
                    }
                    return deliveries.accept(newEvents, options);
                },
                traces: { ...honest, of: async (ids) => new Map([...(await honest.of(ids)), ...accepted]) },
            },
        };
    },
};

proveWebhookLaws(t, traceLaws, MUTANTS);
proveWebhookLaws(t, acceptedTraceLaws, ACCEPTED_MUTANTS);
proveWebhookLaws(t, retainedTraceLaws, RETAINED_MUTANTS);
