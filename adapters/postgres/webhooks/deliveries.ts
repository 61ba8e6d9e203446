import type { Executor } from '../../../lib/transaction.ts';
import { REPLAYABLE } from '../../../lib/webhooks/deliveries/delivery-states.ts';
import type { Attempt, Delivery, DeliveryStore } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { DeliveryContent, EventSummary } from '../../../lib/webhooks/events/new-event.ts';
import type { FormattedMessage, MessageStore } from '../../../lib/webhooks/messages/formatted-message.ts';
import type { TraceStore } from '../../../lib/webhooks/observing/trace-store.ts';
import { INTERRUPTIONS, interrupted } from '../../../lib/webhooks/outcomes/outcome.ts';
import { storeRefusals } from '../../../lib/webhooks/store-refusals.ts';
import { type Row, uuidOrNull, withDates } from '../database.ts';
import { prepared } from '../prepared.ts';
import { databaseTime } from '../store-clock.ts';
import { accept, acceptJoined } from './acceptance.ts';
import { keepTraces } from './acceptance-statements.ts';
import { attemptLists } from './attempt-lists.ts';
import { claim, sessionStore, sweep } from './claims.ts';
import { countKeeping } from './delivery-counts.ts';
import { countDeliveries, countSlices, DELIVERY_COLUMNS, deliveryFromRow, LATE, listDeliveries, SOON } from './delivery-lists.ts';
import { dispatching } from './dispatch.ts';
import type { Notifications } from './notifications.ts';
import { recordOutcomes, responseStore } from './outcomes.ts';
import { replayStore } from './replays.ts';
import { retentionStore } from './retention.ts';

/** `$1` is the id of a delivery. */
const GET: string = `
select ${DELIVERY_COLUMNS}
from scanwire.deliveries d
join scanwire.events v on v.id = d.event_id
left join scanwire.exporters e on e.id = d.exporter_id
where d.id = $1`;

/** An open attempt is stored in the row of its delivery; attempts that have ended have rows of their own. */
const ATTEMPTS = `
select a.number, a.started_at as "startedAt", a.finished_at as "finishedAt", a.outcome, a.late
from scanwire.attempts a
where a.delivery_id = $1
union all
select d.attempts, d.claimed_at, null, null, false
from scanwire.deliveries d
where d.id = $1 and d.state = 'sending'
order by number`;

/** `$1` is the id of a delivery. */
const CONTENT = `
select
    d.exporter_id as "exporterId", v.id, v.kind, v.body, v.created_at as "createdAt", v.erased_at as "erasedAt",
    case when f.delivery_id is not null then
        json_build_object('contentType', f.content_type, 'headers', f.headers, 'body', f.body, 'failure', f.failure)
    end as message
from scanwire.deliveries d
join scanwire.events v on v.id = d.event_id
left join scanwire.delivery_messages f on f.delivery_id = d.id
where d.id = $1`;

/** `$1` is the id of a delivery, `$2` the failure that its message has still; the others are the message. */
const KEEP_MESSAGE = `
update scanwire.delivery_messages f
set content_type = $3, headers = $4, body = $5, failure = $6
where f.delivery_id = $1 and f.failure = $2
returning f.delivery_id`;

/** `$1` is the id of a delivery. */
const MESSAGE = `
select f.content_type as "contentType", f.headers, f.body, f.failure
from scanwire.delivery_messages f
where f.delivery_id = $1`;

/** The exporter is locked against removal, as in `accept`, and the event against being erased. */
const REPLAY: string = `
with exporter as materialized (
    select e.id, e.collector from scanwire.exporters e
    where e.id = (select d.exporter_id from scanwire.deliveries d where d.id = $1)
    for key share
),
event as materialized (
    select v.id, v.kind, v.created_at from scanwire.events v
    where v.id = (select d.event_id from scanwire.deliveries d where d.id = $1) and v.erased_at is null
    for share
),
replayed as (
    update scanwire.deliveries d
    set
        state = 'pending',
        priority = least(d.priority, 1),
        round = 0,
        faults = 0,
        expired_claims = 0,
        due_at = scanwire.now(),
        finished_at = null
    from exporter e, event v
    where
        d.id = $1 and d.exporter_id = e.id and d.event_id = v.id
        and (d.state in (${REPLAYABLE.map((state) => `'${state}'`).join(', ')}) or d.state = 'pending' and d.attempts > 0)
    returning d.*
)
select ${DELIVERY_COLUMNS}
from replayed d
join exporter e on e.id = d.exporter_id
join event v on v.id = d.event_id`;

/** `$1` is the id of a delivery. */
const DISCARD: string = 'select scanwire.discard_delivery($1) as discarded';

/** `$1` is the id of an event. */
const EVENT: string = `
select v.id, v.kind, v.created_at as "createdAt", v.erased_at as "erasedAt" from scanwire.events v where v.id = $1`;

/** That of a delivery that has not been accepted earlier than so many milliseconds after the event `$1`. */
const numberOfEvent = (after: number): string =>
    `(select scanwire.first_delivery_since(v.created_at + ${after} * interval '1 millisecond') from scanwire.events v where v.id = $1)`;

/** `$1` is the id of an event, `$2` the outcome of attempts that are under way. */
const ERASE: string = `
with held as (
    update scanwire.deliveries d set state = 'erased', finished_at = scanwire.now()
    where
        d.stage = 'failed' and d.event_id = $1 and d.seq >= ${numberOfEvent(-SOON)} and d.seq < ${numberOfEvent(LATE)}
        and (d.state = 'held' or case when d.order_key is not null then scanwire.has_place(d.exporter_id, d.order_key, d.seq) end)
    returning d.id
)
select
    v.id, v.kind, v.created_at as "createdAt", v.erased_at as "erasedAt", v.ended + (select count(*) from held)::integer as ended
from scanwire.erase_event($1, $2) v`;

/** `$1` are ids of events, `$2` their traces. */
const KEEP_TRACES: string = prepared(keepTraces('$1', '$2'));

/** `$1` are ids of events. */
const TRACES: string = prepared('select event_id as "eventId", traceparent from scanwire.traces_of($1)');

/**
 * Events, deliveries and attempts in the tables of migration `0002-webhooks`. `db` rejects with `UNAVAILABLE` by itself.
 *
 * @param notifications How commits are heard. Without it they are not.
 */
export function deliveries(db: Executor, notifications?: Notifications): DeliveryStore {
    const keepCounts = countKeeping(db);
    return {
        transactions: true,
        idempotent: true,
        holds: true,
        ordered: true,
        rated: true,
        filtersByExporters: true,
        keepsCounts: true,
        namesSilent: true,
        attemptLists: attemptLists(() => db),
        replays: replayStore(db),
        retention: retentionStore(db),
        traces: traceStore(db),
        responses: responseStore(db),
        messages: messageStore(db),
        ...(notifications?.listen && { listen: notifications.listen }),
        accept: (newEvents, { tx, ...options } = {}) =>
            tx === undefined ? accept(db, newEvents, options, true) : acceptJoined(tx, newEvents, options, notifications),

        now: () => databaseTime(db),

        dispatch: dispatching(db),

        async sweep(options) {
            const swept = await sweep(db, options);
            await keepCounts(options.onWarning);
            return swept;
        },

        claim: (requests, session, maxBytes) => claim(db, requests, session, maxBytes),
        recordOutcomes: (outcomes, rules) => recordOutcomes(db, outcomes, rules),

        ...sessionStore(db, notifications?.beside(db) ?? db),
        get: (id) => get(db, id),

        async attempts(deliveryId) {
            const { rows } = await db.query<Row<Attempt>>(ATTEMPTS, [uuidOrNull(deliveryId)]);
            return rows.map((row) => withDates(row, ['startedAt', 'finishedAt']));
        },

        content: (deliveryId) => content(db, deliveryId),
        list: (query) => listDeliveries(db, query),
        count: (filter, max) => countDeliveries(db, filter, max),
        activity: (bounds, options) => countSlices(db, bounds, options),
        replay: (id) => replay(db, id),
        discard: (id) => discard(db, id),

        async event(id) {
            const { rows } = await db.query<Row<EventSummary>>(EVENT, [uuidOrNull(id)]);
            return rows[0] === undefined ? null : withDates(rows[0], ['createdAt', 'erasedAt']);
        },

        async erase(eventId) {
            const outcome = JSON.stringify(interrupted(0, INTERRUPTIONS.erased));
            const { rows } = await db.query<Row<EventSummary & { ended: number }>>(ERASE, [uuidOrNull(eventId), outcome]);
            if (rows[0] === undefined) {
                throw storeRefusals.unknownEvent();
            }
            return withDates(rows[0], ['createdAt', 'erasedAt']);
        },
    };
}

async function get(db: Executor, id: string): Promise<Delivery | null> {
    const { rows } = await db.query<Row<Delivery>>(GET, [uuidOrNull(id)]);
    return rows[0] === undefined ? null : deliveryFromRow(rows[0]);
}

async function content(db: Executor, deliveryId: string): Promise<DeliveryContent | null> {
    type Columns = DeliveryContent['event'] & Omit<DeliveryContent, 'event'>;
    const { rows } = await db.query<Row<Columns>>(CONTENT, [uuidOrNull(deliveryId)]);
    if (rows[0] === undefined) {
        return null;
    }
    const { exporterId, message, ...event } = withDates(rows[0], ['createdAt', 'erasedAt']);
    return { exporterId, event, message };
}

async function replay(db: Executor, id: string): Promise<Delivery> {
    const { rows } = await db.query<Row<Delivery>>(REPLAY, [uuidOrNull(id)]);
    if (rows[0] !== undefined) {
        return deliveryFromRow(rows[0]);
    }
    const delivery = await get(db, id);
    if (delivery === null) {
        throw storeRefusals.unknownDelivery();
    }
    const [event] = (await db.query<Row<EventSummary>>(EVENT, [delivery.eventId])).rows;
    throw event?.erasedAt === null ? storeRefusals.notReplayable() : storeRefusals.eventErased();
}

async function discard(db: Executor, id: string): Promise<Delivery> {
    const { rows } = await db.query<{ discarded: boolean }>(DISCARD, [uuidOrNull(id)]);
    const delivery = await get(db, id);
    if (delivery === null) {
        throw storeRefusals.unknownDelivery();
    }
    if (rows[0]?.discarded !== true) {
        throw storeRefusals.notDiscardable();
    }
    return delivery;
}

/** Messages in the table of the migration `0012-subscriptions`. */
function messageStore(db: Executor): MessageStore {
    return {
        async keep(deliveryId, message, failure) {
            const id = uuidOrNull(deliveryId);
            const { contentType, headers, body } = message;
            const kept = await db.query(KEEP_MESSAGE, [id, failure, contentType, JSON.stringify(headers), body, message.failure]);
            if (kept.rows.length > 0) {
                return message;
            }
            // In a statement of its own, which sees what another process has just kept.
            const { rows } = await db.query<Row<FormattedMessage>>(MESSAGE, [id]);
            return rows[0] ?? null;
        },
    };
}

/** Traces in the table of the migration `0061-traces`. */
function traceStore(db: Executor): TraceStore {
    return {
        keptByAccept: true,

        async keep(traces) {
            await db.query(KEEP_TRACES, [traces.map(({ eventId }) => eventId), traces.map(({ traceparent }) => traceparent)]);
        },

        async of(eventIds) {
            const { rows } = await db.query<{ eventId: string; traceparent: string }>(TRACES, [eventIds]);
            return new Map(rows.map(({ eventId, traceparent }) => [eventId, traceparent]));
        },
    };
}
