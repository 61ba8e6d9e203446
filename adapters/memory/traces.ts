import type { TraceStore } from '../../lib/webhooks/traces.ts';
import type { WebhookState } from './webhook-state.ts';

/** Traces of the state. */
export function traceStore(state: WebhookState): TraceStore {
    return {
        async keep(traces) {
            for (const { eventId, traceparent } of traces) {
                if (!state.traces.has(eventId)) {
                    state.traces.set(eventId, { traceparent, keptAt: state.clock() });
                }
            }
        },

        async of(eventIds) {
            const found = eventIds.map((eventId) => [eventId, state.traces.get(eventId)?.traceparent] as const);
            return new Map(found.filter((one): one is readonly [string, string] => one[1] !== undefined));
        },
    };
}
