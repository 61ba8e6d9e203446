/** The statements that accept events. */
import { prepared } from '../prepared.ts';

/**
 * Selects the columns of a table with traces (`0061-traces`) for as many events.
 *
 * @param ids A parameter, such as `$1`, with their ids.
 * @param traceparents The same with what is kept of each.
 */
export const keepTraces = (ids: string, traceparents: string): string => `
insert into scanwire.traces (event_id, traceparent, kept_at)
    select event_id, traceparent, scanwire.now() from unnest(${ids}::uuid[], ${traceparents}::text[]) as given (event_id, traceparent)
    on conflict do nothing`;

const traced = new Map<string, string>();

/**
 * One of these statements that keeps traces as well: a statement of their own would take another round trip and another commit for each event that is
 * published alone.
 *
 * @param parameters How many the statement has. Behind them come the ids of the traced events, and their traces.
 */
export function withTraces(statement: string, parameters: number): string {
    const known = traced.get(statement);
    if (known !== undefined) {
        return known;
    }
    const traces = keepTraces(`$${parameters + 1}`, `$${parameters + 2}`);
    const text = prepared(`with traced as (${traces}) select a.* from (${statement}) a`);
    traced.set(statement, text);
    return text;
}

/**
 * `$1` is a JSON array of events. It is passed as text, since the application's driver may encode a parameter of type `json` a second time. `$2`
 * is the revision by which subscribers were chosen, or null. `$3` are the milliseconds within which an attempt must have begun, null when nothing
 * is to be handed out. The others are as in `DISPATCH`.
 */
const accepting = (name: string, events = '$1::text::json'): string => `
select a.outdated, a.missing, a.duplicate, a.conflicting, a.event_id as "eventId", a.deliveries
from scanwire.${name}(${events}, $2, $3::double precision * interval '1 millisecond', $4, $5, $6, $7) a`;

/** For events that go to no subscriber and have no keys of the caller's. */
export const ACCEPT: string = prepared(accepting('accept_events'));

/** The same for others. */
export const ACCEPT_CHOSEN: string = prepared(accepting('accept_chosen_events'));

/** The same for events of which some have order keys. */
export const ACCEPT_ORDERED: string = prepared(accepting('accept_ordered_events'));

/**
 * The same for events that are all for exporters of the same types and have bodies of JSON, outside a transaction of the application: `$1` their ids, `$2` the
 * array of their bodies, `$3` their kinds, `$4` their owners, `$5` the types, then as there. An event that is there already violates the key of its table.
 */
export const ACCEPT_ALIKE: string = prepared(`
select a.outdated, a.event_id as "eventId", a.deliveries
from scanwire.accept_written_events(
    $1, $2::text::json, $3, $4, $5, $6, $7::double precision * interval '1 millisecond', $8, $9, $10, $11
) a`);

/**
 * The same for one event: `$1` its id, `$2` its kind, `$3` its body, `$4` its owner, `$5` the types, then as in {@link ACCEPT} from `$2` on.
 * Answers with its deliveries.
 */
export const ACCEPT_SINGLE: string = prepared(`
select
    a.outdated, a.delivery_id as id, a.exporter_id as "exporterId", a.collector, a.token,
    extract(epoch from a.begin_by)::double precision * 1000 as "beginBy", a.generation, a.settings
from scanwire.accept_single_event($1, $2, $3, $4, $5, $6, $7::double precision * interval '1 millisecond', $8, $9, $10, $11) a`);

const acceptingSingly = (id: string): string => `
select
    a.outdated, a.conflicting, a.duplicate, a.accepted_as as "acceptedAs",
    a.delivery_id as id, a.exporter_id as "exporterId", a.collector, a.token,
    extract(epoch from a.begin_by)::double precision * 1000 as "beginBy", a.generation, a.settings
from scanwire.accept_single_chosen_event(
    ${id}, $2, $3, $4, array(select json_array_elements_text($5::text::json)), array(select json_array_elements_text($6::text::json)::uuid),
    $7::text::json, $8, $9, $10, $11::double precision * interval '1 millisecond', $12, $13, $14, $15
) a`;

/**
 * The same for one event that exporters chose, or with a key of the caller's: the types are followed by the ids of the exporters that chose it, a JSON
 * array of the messages of those that get another body, or null, the key, or null, and its digest. The types and the ids are JSON arrays as well: this
 * runs in transactions of the application, whose query builder may make several parameters of a list.
 */
export const ACCEPT_SINGLE_CHOSEN: string = prepared(acceptingSingly('$1'));

/**
 * The same as {@link ACCEPT_ORDERED}, but that it waits for no order key: `$8` are those of the events. The locks are those of `scanwire.enter_order`, which gets what is held
 * already. Those that somebody else has come back as `locked`, in each row, and their events are left out. Where somebody has the one of all keys,
 * nothing is called, since that would wait for it whatever it is given. Where an event has an idempotency key `$9` says how long any lock is waited for, else
 * it is null: all others wait for those keys before they ask for the order keys, which this has by then.
 */
export const ACCEPT_UNLOCKED: string = prepared(`
with patience as materialized (
    select case when $9::text is not null then set_config('lock_timeout', $9, true) end as lock_timeout
),
taken as materialized (
    select array_agg(k.key) filter (where k.locked) as locked, bool_and(k.open) as open
    from (
        select
            given.key,
            not ordering.needed or whole.free as open,
            case
                when ordering.needed
                then not (whole.free and pg_try_advisory_xact_lock(hashtext('scanwire.order_keys'), hashtext(given.key)))
                else false
            end as locked
        from patience
        cross join (select exists (select from scanwire.exporters e where e.ordered) as needed) ordering
        cross join (select pg_try_advisory_xact_lock_shared(hashtext('scanwire.all_order_keys'), 0) as free) whole
        cross join (select distinct key from unnest($8::text[]) as given (key)) given
    ) k
)
select to_json(t.locked) as locked, accepted.*
from taken t
left join (
    select a.*
    from (select * from taken where open) o
    cross join lateral (${accepting(
        'accept_ordered_events',
        `
        case
            when o.locked is null then $1::text::json
            else (
                select coalesce(json_agg(e.event order by e.place) filter (where (e.event->>'order_key' = any (o.locked)) is not true), '[]')
                from json_array_elements($1::text::json) with ordinality as e (event, place)
            )
        end`,
    )}
    ) a
) accepted on true`);

/** A statement that waits for a lock as long as this parameter says, and no longer. */
const waiting = (timeout: string, statement: string): string =>
    prepared(`
with patience as materialized (select set_config('lock_timeout', ${timeout}, true) as lock_timeout)
select a.*
from patience p
cross join lateral (${statement}
) a`);

/** What a statement of {@link waiting} accepts; named so, it comes after the timeout. */
const IN_PATIENCE = 'case when p.lock_timeout is not null then $1::text::json end';

/** The same as {@link ACCEPT_ORDERED}, but that a lock is waited for so long, `$8`, and no longer. */
export const ACCEPT_WAITING: string = waiting('$8', accepting('accept_ordered_events', IN_PATIENCE));

/** The same as {@link ACCEPT_CHOSEN}, so. */
export const ACCEPT_CHOSEN_WAITING: string = waiting('$8', accepting('accept_chosen_events', IN_PATIENCE));

/** The same as {@link ACCEPT_SINGLE_CHOSEN}, so: the timeout is `$16`. */
export const ACCEPT_SINGLE_CHOSEN_WAITING: string = waiting(
    '$16',
    acceptingSingly('case when p.lock_timeout is not null then $1::uuid end'),
);
