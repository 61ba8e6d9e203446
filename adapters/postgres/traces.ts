import type { Executor } from '../../lib/transaction.ts';
import type { TraceStore } from '../../lib/webhooks/traces.ts';

const KEEP = `insert into scanwire.traces (event_id, traceparent, kept_at)
    select event_id, traceparent, scanwire.now() from unnest($1::uuid[], $2::text[]) as given (event_id, traceparent)
    on conflict do nothing`;

const OF = `select event_id as "eventId", traceparent from scanwire.traces where event_id = any ($1::uuid[])`;

/** Traces in the table of the migration `0061-traces`. */
export function traceStore(db: Executor): TraceStore {
    return {
        async keep(traces) {
            await db.query(KEEP, [traces.map(({ eventId }) => eventId), traces.map(({ traceparent }) => traceparent)]);
        },

        async of(eventIds) {
            const { rows } = await db.query<{ eventId: string; traceparent: string }>(OF, [eventIds]);
            return new Map(rows.map(({ eventId, traceparent }) => [eventId, traceparent]));
        },
    };
}
