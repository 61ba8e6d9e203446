import type { Claim, DeliveryState, Dispatched } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { StoredExporter } from '../../../lib/webhooks/exporters/exporter.ts';
import type { Row, Time } from '../database.ts';
import { prepared } from '../prepared.ts';
import { EXPORTER_COLUMNS } from './exporters.ts';

/** A `Delivery` of deliveries `d`, their events `v` and, where they still exist, exporters `e`. */
export const DELIVERY_COLUMNS = `d.id, d.event_id as "eventId", v.kind, d.exporter_id as "exporterId",
    coalesce(e.collector, d.collector) as collector, d.state, d.attempts, d.due_at as "dueAt", v.created_at as "createdAt",
    d.finished_at as "finishedAt", d.last_code as "lastCode"`;

/**
 * `$1` is a JSON array of events. It is a text first, since the application's driver may turn whatever is to be `json` into JSON once
 * more. `$2` the revision that subscribers were chosen by, or null, `$3` milliseconds within which an attempt must have begun, null when
 * nothing is to be handed out; the others as in {@link DISPATCH}.
 */
const accept = (name: string): string =>
    prepared(`
select a.outdated, a.missing, a.duplicate, a.conflicting, a.event_id as "eventId", a.deliveries
from scanwire.${name}($1::text::json, $2, $3::double precision * interval '1 millisecond', $4, $5, $6, $7) a`);

/** For events that no exporter has chosen, without keys of the caller's. */
export const ACCEPT: string = accept('accept_events');

/** The same for others. */
export const ACCEPT_CHOSEN: string = accept('accept_chosen_events');

/** The same for events of which some have order keys. */
export const ACCEPT_ORDERED: string = accept('accept_ordered_events');

/**
 * The same for events that are all for exporters of the same types, outside a transaction of the application: `$1` their ids, `$2` as `$1` of
 * {@link ACCEPT}, `$3` the types, then as there. An event that is there already violates the key of its table.
 */
export const ACCEPT_ALIKE: string = prepared(`
select a.outdated, a.event_id as "eventId", a.deliveries
from scanwire.accept_alike_events($1, $2::text::json, $3, $4, $5::double precision * interval '1 millisecond', $6, $7, $8, $9) a`);

/**
 * The same for one event: `$1` its id, `$2` its kind, `$3` its body, `$4` its owner, `$5` the types, then as in {@link ACCEPT} from `$2` on.
 * Answers with its deliveries.
 */
export const ACCEPT_SINGLE: string = prepared(`
select
    a.outdated, a.delivery_id as id, a.exporter_id as "exporterId", a.collector, a.token,
    extract(epoch from a.begin_by)::double precision * 1000 as "beginBy", a.generation, a.settings
from scanwire.accept_single_event($1, $2, $3, $4, $5, $6, $7::double precision * interval '1 millisecond', $8, $9, $10, $11) a`);

/** One event of {@link ACCEPT}, or why none was stored. */
export interface AcceptedRow {
    readonly outdated: boolean;
    /** Absent, as the two that follow, from {@link ACCEPT_ALIKE}. */
    readonly missing?: boolean;
    readonly duplicate?: boolean;
    readonly conflicting?: boolean;
    readonly eventId: string;
    readonly deliveries: readonly AcceptedDelivery[];
}

export interface AcceptedDelivery {
    readonly id: string;
    readonly exporterId: string;
    readonly collector: string;
    /** Null when it was not handed out, and what follows then says nothing. */
    readonly token: string | null;
    readonly beginBy: number | null;
    readonly generation: number | null;
    readonly settings: number | null;
}

const dispatch = (handOut: string): string =>
    prepared(`
select
    delivery_id as "deliveryId", collector, attempt, single as "singleAttempt", exporter_id as "exporterId", token,
    extract(epoch from begin_by)::double precision * 1000 as "beginBy", generation, settings, round,
    waits_for as "waitsFor",
    current_setting('scanwire.passed_by', true) = 'yes' as "passedBy"
from scanwire.${handOut}`);

/**
 * `$1` window, `$2` failures from which an exporter is probed only, `$3` limit, `$4` slots of a collector whose workers are not known, `$5`
 * milliseconds from which on an attempt is slow, `$6` milliseconds within which an attempt must have begun, or null.
 */
export const DISPATCH: string = dispatch(`hand_out_due_deliveries($1, $2, $3, $4, $5, $6::double precision * interval '1 millisecond')`);

/** The same with a rate for all exporters together: `$7` deliveries a second. */
export const DISPATCH_AT_RATE: string = dispatch(
    `hand_out_at_rate($1, $2, $3, $4, $5, $6::double precision * interval '1 millisecond', $7)`,
);

/** A delivery of {@link DISPATCH}; the first row has nothing but what the rest waits for, and whether any were passed by since it was not their turn. */
export interface DispatchRow extends Pick<Dispatched, 'deliveryId' | 'collector' | 'attempt' | 'singleAttempt'> {
    readonly exporterId: string;
    readonly token: string | null;
    readonly beginBy: number | null;
    readonly generation: number;
    readonly settings: number;
    readonly round: number;
    readonly waitsFor: readonly string[] | null;
    readonly passedBy?: boolean | null;
}

/**
 * `$1` milliseconds after which a job counts as lost, `$2` how many of each kind, `$3` claims in a row, `$4` outcome of those that ran
 * out, `$5` whether only claims of ended sessions count, `$6` milliseconds for which an attempt may go on unnamed.
 */
export const SWEEP: string = prepared(`
select
    s.delivery_id as "deliveryId", s.exporter_id as "exporterId", s.collector, s.attempt, s.single as "singleAttempt", s.poisoned
from scanwire.take_back_grants($2, $6 * interval '1 millisecond', $5) t
cross join lateral scanwire.sweep_and_tell($1 * interval '1 millisecond', $2 + 0 * t, $3, $4, $5) s`);

/** A delivery of {@link SWEEP}; one that is set aside has nothing but its id. */
export interface SweptRow extends Omit<Dispatched, 'reservation'> {
    readonly poisoned: boolean;
}

/** The store's time. */
export const NOW: string = prepared('select scanwire.now() as now');

/** `$1` is a JSON array of outcomes, `$2` the rules of the breaker, `$3` the outcome of who sends what was delivered already. */
export const RECORD_OUTCOMES: string = prepared('select finish_attempts as index from scanwire.finish_attempts($1, $2, $3)');

/** The same where all were delivered, and soon: `$4` are their exporters. */
export const RECORD_DELIVERED: string = prepared('select finish_delivered as index from scanwire.finish_delivered($1, $2, $3, $4)');

/** The same for one: `$4` its exporter, `$5` its id, `$6` its claim, `$7` when it was begun, `$8` the code of its outcome, `$9` the outcome. */
export const RECORD_SINGLE_DELIVERED: string = prepared(
    'select finish_single_delivered as index from scanwire.finish_single_delivered($1, $2, $3, $4, $5, $6, $7, $8, $9)',
);

/** `$1` is the id of a delivery. */
export const GET: string = `
select ${DELIVERY_COLUMNS}
from scanwire.deliveries d
join scanwire.events v on v.id = d.event_id
left join scanwire.exporters e on e.id = d.exporter_id
where d.id = $1`;

/** An open attempt is part of its delivery; those that have ended have rows. */
export const ATTEMPTS = `
select a.number, a.started_at as "startedAt", a.finished_at as "finishedAt", a.outcome, a.late
from scanwire.attempts a
where a.delivery_id = $1
union all
select d.attempts, d.claimed_at, null, null, false
from scanwire.deliveries d
where d.id = $1 and d.state = 'sending'
order by number`;

/** `$1` is the id of a delivery. */
export const CONTENT = `
select
    d.exporter_id as "exporterId", v.id, v.kind, v.body, v.created_at as "createdAt", v.erased_at as "erasedAt",
    case when f.delivery_id is not null then
        json_build_object('contentType', f.content_type, 'headers', f.headers, 'body', f.body, 'failure', f.failure)
    end as message
from scanwire.deliveries d
join scanwire.events v on v.id = d.event_id
left join scanwire.delivery_messages f on f.delivery_id = d.id
where d.id = $1`;

/** The exporter is locked against removal, as in `accept`, and the event against being erased. */
export const REPLAY: string = `
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
        and (d.state in ('delivered', 'exhausted', 'poisoned', 'held') or d.state = 'pending' and d.attempts > 0)
    returning d.*
)
select ${DELIVERY_COLUMNS}
from replayed d
join exporter e on e.id = d.exporter_id
join event v on v.id = d.event_id`;

/** `$1` is the id of a delivery. */
export const DISCARD: string = 'select scanwire.discard_delivery($1) as discarded';

/** `$1` is the id of an event. */
export const EVENT: string = `
select v.id, v.kind, v.created_at as "createdAt", v.erased_at as "erasedAt" from scanwire.events v where v.id = $1`;

/** `$1` is the id of an event, `$2` the outcome of attempts that are under way. */
export const ERASE: string = `
with held as (
    update scanwire.deliveries d set state = 'erased', finished_at = scanwire.now()
    where
        d.stage = 'failed' and d.event_id = $1
        and (d.state = 'held' or case when d.order_key is not null then scanwire.has_place(d.exporter_id, d.order_key, d.seq) end)
    returning d.id
)
select
    v.id, v.kind, v.created_at as "createdAt", v.erased_at as "erasedAt", v.ended + (select count(*) from held)::integer as ended
from scanwire.erase_event($1, $2) v`;

/**
 * `$1` id, `$2` process, `$3` slots, `$4` milliseconds, `$5` generation of the settings, or null, `$6` the time up to which it has said
 * what it has begun, or null, `$7` a JSON array of that, `$8` whether it opens sealed URLs.
 */
export const KEEP_ALIVE: string = prepared('select scanwire.keep_alive($1, $2, $3, $4, $5, $6, $7, $8) as now');

/** Which of the partial indexes holds the deliveries of a state, as the column `stage` says. */
export const STAGES: { readonly [State in DeliveryState]: string } = {
    pending: 'waiting',
    queued: 'in flight',
    sending: 'in flight',
    delivered: 'delivered',
    exhausted: 'failed',
    poisoned: 'failed',
    cancelled: 'failed',
    erased: 'failed',
    held: 'failed',
};

/**
 * `$1` is a JSON array of `{ index, id, token, duration, grant, holds }`, `$2` the session, or null, `$3` the bytes that all bodies
 * together may have, or null. Planned again each time, since it joins tables that grow.
 */
export const CLAIM: string = `
select
    m.index,
    m."end",
    m.delivery_id as "deliveryId",
    m.token,
    m.claimed_at as "claimedAt",
    m.attempt,
    m.round as "attemptSinceReplay",
    m.single as "singleAttempt",
    e.generation,
    v.id as "eventId",
    v.kind,
    v.body,
    v.created_at as "eventCreatedAt",
    case when f.delivery_id is not null then
        json_build_object('contentType', f.content_type, 'headers', f.headers, 'body', f.body, 'failure', f.failure)
    end as message,
    ${EXPORTER_COLUMNS}
from scanwire.claim_attempts($1, $2, $3) m
join scanwire.events v on v.id = m.event_id
join scanwire.exporters e on e.id = m.exporter_id
left join scanwire.delivery_messages f on f.delivery_id = m.delivery_id`;

/** A claim of {@link CLAIM} beside its event and the columns of its exporter. */
export interface ClaimRow
    extends Row<StoredExporter>,
        Pick<Claim, 'deliveryId' | 'token' | 'attempt' | 'attemptSinceReplay' | 'singleAttempt' | 'generation' | 'message'> {
    /** Of its request, from 0. */
    readonly index: number;
    /** The number of requests that were looked at; null for all. */
    readonly end: number | null;
    readonly eventId: string;
    readonly kind: string;
    readonly body: string;
    readonly claimedAt: Time;
    readonly eventCreatedAt: Time;
}

/** `$1` are ids of events, `$2` their traces. */
export const KEEP_TRACES: string = prepared(`
insert into scanwire.traces (event_id, traceparent, kept_at)
    select event_id, traceparent, scanwire.now() from unnest($1::uuid[], $2::text[]) as given (event_id, traceparent)
    on conflict do nothing`);

/** `$1` are ids of events. */
export const TRACES: string = prepared('select event_id as "eventId", traceparent from scanwire.traces where event_id = any ($1::uuid[])');

/** `$1` is a JSON array of responses. */
export const KEEP_RESPONSES: string = prepared('select scanwire.keep_responses($1)');

/** `$1` is the id of a delivery. */
export const RESPONSES = `
select a.number, r.text, r.bytes, r.truncated
from scanwire.attempt_responses r
join scanwire.attempts a on a.delivery_id = r.delivery_id and a.token = r.token
where r.delivery_id = $1`;
