import type { Migration } from '../migrate.ts';

/**
 * Which events an exporter chooses, whose it is, and what is sent of them in other formats than the native one.
 *
 * Processes of the version before go on beside those of this one: to them an exporter that chooses is like any other, so that the first
 * one is to be made once all are of this version.
 */
const tables = `
alter table scanwire.exporters
    add column kinds json,
    add column filter json,
    add column owner text,
    add column format text not null default 'native',
    add column template json,
    add column sealed_format_secret text,
    add column selective boolean not null generated always as (
        kinds is not null or filter is not null or owner is not null or format <> 'native'
    ) stored;

create or replace trigger exporters_generation
before update on scanwire.exporters
for each row
when (
    (old.name, old.url, old.collector, old.type, old.trust, old.signatures::text, old.schedule::text, old.header_names::text, old.state,
        old.sealed_secret, old.previous_secrets::text, old.sealed_headers, old.sealed_format_secret)
    is distinct from
    (new.name, new.url, new.collector, new.type, new.trust, new.signatures::text, new.schedule::text, new.header_names::text, new.state,
        new.sealed_secret, new.previous_secrets::text, new.sealed_headers, new.sealed_format_secret)
)
execute function scanwire.next_generation();

alter table scanwire.events add column owner text;

-- What is sent in place of the event's body; or why it could not be made.
create table scanwire.delivery_messages (
    delivery_id uuid primary key,
    event_id uuid not null,
    content_type text not null,
    headers json not null,
    body text not null,
    failure text
);

create index delivery_messages_event on scanwire.delivery_messages (event_id);

-- What was made of a body that is erased.
create function scanwire.erase_messages()
returns trigger
language plpgsql
as $$
begin
    delete from scanwire.delivery_messages m where m.event_id = new.id;
    return null;
end
$$;

create trigger events_erased
after update of erased_at on scanwire.events
for each row
when (old.erased_at is null and new.erased_at is not null)
execute function scanwire.erase_messages();

-- How often what running exporters choose has been changed. One row: who accepts compares what it has chosen by with what is committed.
create table scanwire.subscriptions (
    revision bigint not null default 0,
    only_row boolean primary key default true check (only_row)
);
insert into scanwire.subscriptions default values;

create function scanwire.next_subscriptions()
returns trigger
language plpgsql
as $$
begin
    update scanwire.subscriptions set revision = revision + 1;
    return null;
end
$$;

create trigger exporters_subscribed
after insert on scanwire.exporters
for each row
when (new.selective and new.state = 'running')
execute function scanwire.next_subscriptions();

create trigger exporters_unsubscribed
after delete on scanwire.exporters
for each row
when (old.selective and old.state = 'running')
execute function scanwire.next_subscriptions();

create trigger exporters_subscription_changed
after update on scanwire.exporters
for each row
when (
    ((old.selective and old.state = 'running') or (new.selective and new.state = 'running'))
    and (old.state, old.type, old.kinds::text, old.filter::text, old.owner, old.format, old.template::text)
    is distinct from
    (new.state, new.type, new.kinds::text, new.filter::text, new.owner, new.format, new.template::text)
)
execute function scanwire.next_subscriptions();

-- What was accepted under a key of the caller's, for as long as the event is kept. Owners have keys of their own.
create table scanwire.idempotency_keys (
    owner text not null,
    key text not null,
    event_id uuid not null,
    -- of kind and body
    digest text not null,
    deliveries json not null default '[]',
    primary key (owner, key)
);

drop function scanwire.accept_events(json, interval, integer, integer, integer, double precision);

-- As before, and bodies count as long as they are sent.
create or replace function scanwire.claim_attempts(requests json, claiming uuid, max_bytes bigint)
returns table (
    index integer, "end" integer, delivery_id uuid, token text, claimed_at timestamptz, attempt integer, round integer, single boolean,
    event_id uuid, exporter_id uuid
)
language plpgsql
rows 1
set enable_seqscan = off
set enable_indexscan = off
set enable_indexonlyscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    at timestamptz := scanwire.now();
    current boolean := not exists (
        select from scanwire.worker_sessions s
        join scanwire.deployment p on p.generation <> s.generation
        where s.id = claiming
    );
begin
    return query
    with asked as materialized (
        select distinct on (r.id) r.*
        from json_to_recordset(requests) as r (index integer, id uuid, token text, duration double precision, "grant" text, holds boolean)
        order by r.id, r.index
    ),
    queued as materialized (
        select a.*, d.priority, d.attempts, d.round, d.event_id, d.exporter_id
        from asked a
        join scanwire.deliveries d on d.id = a.id
        where not a.holds and d.state = 'queued' and (d.token is null or d.token = a."grant")
        order by d.id
        for update of d
    ),
    held as (
        select a.*, d.priority, d.attempts, d.round, d.event_id, d.exporter_id
        from asked a
        join scanwire.deliveries d on d.id = a.id
        where a.holds and d.state = 'queued' and d.token = a."grant"
    ),
    found as materialized (
        select
            a.*, a.priority = 0 as single, octet_length(coalesce(m.body, v.body)) as bytes,
            current and (a.priority = 0 or e.state = 'running') as claimed
        from (select q.* from queued q union all select h.* from held h) a
        join scanwire.events v on v.id = a.event_id
        join scanwire.exporters e on e.id = a.exporter_id
        left join scanwire.delivery_messages m on m.delivery_id = a.id
    ),
    first_beyond as materialized (
        select min(s.index) as index
        from (select f.index, f.bytes, sum(f.bytes) over (order by f.index) as total from found f where f.claimed) s
        where s.total > max_bytes and s.total > s.bytes
    ),
    moved as (
        update scanwire.deliveries d
        set
            state = case when f.claimed then 'sending' else 'pending' end,
            attempts = d.attempts + f.claimed::integer,
            round = d.round + f.claimed::integer,
            token = case when f.claimed then f.token end,
            -- what was taken back and goes back again has still not been claimed
            begin_by = case when not f.claimed and d.token is null then d.begin_by end,
            session = case when f.claimed then claiming end,
            claimed_at = case when f.claimed then at end,
            claim_expires_at = case when f.claimed then at + f.duration * interval '1 millisecond' end
        from found f
        join first_beyond b on b.index is null or f.index < b.index
        where d.id = f.id and not f.holds
    )
    select f.index, b.index, f.id, case when f.holds then f."grant" else f.token end, at, f.attempts + 1, f.round + 1, f.single, f.event_id, f.exporter_id
    from found f
    join first_beyond b on b.index is null or f.index < b.index
    where f.claimed;
end
$$;
`;

/**
 * What acceptance does for exporters that choose, and for keys of the caller's. Setting up a plan of many nodes is what a small one costs:
 * without them, there is none of it.
 */
const choosing = ({ takes, chosenFlag }: Holding) => ({
    // Whoever stores the same key at the same time is waited for; the next statement sees what he has committed. A key whose event was
    // never stored is free.
    keys: `
    if exists (select from json_to_recordset(events) as i (key text) where i.key is not null) then
        insert into scanwire.idempotency_keys (owner, key, event_id, digest)
        select coalesce(i.owner, ''), i.key, i.id, i.digest
        from json_to_recordset(events) as i (id uuid, owner text, key text, digest text)
        where i.key is not null
        order by 1, 2
        on conflict do nothing;

        update scanwire.idempotency_keys k
        set event_id = i.id, digest = i.digest
        from json_to_recordset(events) as i (id uuid, owner text, key text, digest text)
        where
            k.owner = coalesce(i.owner, '') and k.key = i.key and k.event_id <> i.id
            and not exists (select from scanwire.events v where v.id = k.event_id);
    end if;
`,
    input: 'asked',
    repeated: `
    repeated as materialized (
        select a.index, k.event_id, k.deliveries, k.digest <> a.digest as conflicts
        from asked a
        join scanwire.idempotency_keys k on k.owner = coalesce(a.owner, '') and k.key = a.key and k.event_id <> a.id
    ),
    input as materialized (
        select a.* from asked a where a.index not in (select r.index from repeated r)
    ),`,
    conflicting: 'exists (select from repeated r where r.conflicts)',
    answers: `
    union all
    select r.index, verdict.outdated, verdict.missing, verdict.duplicate, verdict.conflicting, r.event_id, r.deliveries
    from repeated r
    cross join verdict`,
    subscribers: `
    chosen as materialized (
        select i.index, i.id as event_id, i.exporter_id is not null as single, s.*
        from input i
        cross join lateral json_to_recordset(i.subscribers) as s (
            exporter_id uuid, content_type text, headers json, body text, failure text
        )
    ),`,
    or: `
            or e.id in (select c.exporter_id from chosen c)`,
    union: `
            union all
            select c.index, c.event_id, false, e.id, e.seq, e.collector${chosenFlag}
            from chosen c
            join addressed e on e.id = c.exporter_id and ${takes}
            where not c.single`,
    messages: `,
    new_messages as (
        insert into scanwire.delivery_messages (delivery_id, event_id, content_type, headers, body, failure)
        select d.id, d.event_id, c.content_type, c.headers, c.body, c.failure
        from new_deliveries d
        join chosen c on c.event_id = d.event_id and c.exporter_id = d.exporter_id and c.content_type is not null
    ),
    kept_keys as (
        update scanwire.idempotency_keys k
        set deliveries = n.deliveries
        from (
            select d.event_id, json_agg(json_build_object('id', d.id, 'token', null) order by d.seq) as deliveries
            from new_deliveries d
            group by d.event_id
        ) n
        join input i on i.id = n.event_id and i.key is not null
        where k.owner = coalesce(i.owner, '') and k.key = i.key
    )`,
});

/** What acceptance does for exporters that are not running. */
interface Holding {
    readonly create: string;
    /** Whether an exporter `e` gets events. */
    readonly takes: string;
    /** Columns and conditions beside those that are always there. */
    readonly reason: string;
    readonly flag: string;
    readonly chosenFlag: string;
    readonly granted: string;
    readonly held: string;
}

/** What acceptance does for exporters that are ordered. */
interface Ordering {
    readonly declare: string;
    /** Before anything is read. */
    readonly enter: string;
    /** Of an event. */
    readonly column: string;
    /** Around the targets, to number those of a key. */
    readonly numbered: string;
    readonly end: string;
    readonly ranked: string;
    /** Which of them wait behind another. */
    readonly blocked: string;
    /** The priority of those. */
    readonly behind: string;
    /** Columns of a delivery beside those that are always there, and their values. */
    readonly columns: string;
    readonly values: string;
    readonly returned: string;
    /** What is kept of those that are in order. */
    readonly places: string;
}

const unordered: Ordering = {
    declare: '',
    enter: '',
    column: '',
    numbered: '',
    end: '',
    ranked: 'row_number() over (partition by t.exporter_id, t.single order by t.index)',
    blocked: '',
    behind: '',
    columns: '',
    values: '',
    returned: '',
    places: '',
};

const notHeld: Holding = {
    create: 'create',
    takes: "e.state = 'running'",
    reason: '',
    flag: '',
    chosenFlag: '',
    granted: '',
    held: '',
};

/** What is not for an exporter that somebody has stopped is held for one that was stopped by an outcome: `stop_reason` says so. */
const held: Holding = {
    create: 'create or replace',
    takes: "(e.state = 'running' or e.stop_reason is not null)",
    reason: ', e.stop_reason',
    flag: ", i.exporter_id is null and e.state <> 'running' as held",
    chosenFlag: ", e.state <> 'running'",
    granted: ' and not t.held',
    held: " when t.held then 'held'",
};

/**
 * Stores events with their deliveries, as DeliveryStore.accept says, or nothing when what was chosen is outdated, an exporter is missing
 * an event id was accepted before, or a key of the caller's with another event: a refusal, unlike an error, leaves the application's transaction usable. The exporters stay locked
 * against removal until the deliveries are committed.
 *
 * 'events' is an array of { index, id, kind, body, owner, types, exporter_id, key, digest, subscribers }, one of types and exporter_id being null, and
 * subscribers one of { exporter_id, content_type, headers, body, failure }, all but the first null for the event's own body.
 * 'begin_within' is null when nothing is to be handed out; else the first tries of exporters that have room, and none that waits, are
 * queued with their claim.
 */
const accept = (
    name: string,
    {
        keys,
        input,
        repeated,
        conflicting,
        answers,
        subscribers,
        or,
        union,
        messages,
    }: { readonly [Part in keyof ReturnType<typeof choosing>]: string },
    { create, takes, reason, flag, granted, held }: Holding,
    { declare, enter, column, numbered, end, ranked, blocked, behind, columns, values, returned, places }: Ordering = unordered,
): string => `
${create} function scanwire.${name}(
    events json, revision bigint, begin_within interval, max_in_flight integer, breaker_after integer, default_slots integer, slow_after double precision
)
returns table (outdated boolean, missing boolean, duplicate boolean, conflicting boolean, event_id uuid, deliveries json)
language plpgsql
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    -- before anything is waited for, so that a claim never holds for longer after what was read with it
    at timestamptz := scanwire.now();${declare}
begin${keys}${enter}
    return query
    with ${input} as materialized (
        select i.* from json_to_recordset(events) as i (
            index integer, id uuid, kind text, body text, owner text, types text[], exporter_id uuid, key text, digest text, subscribers json${column}
        )
    ),${repeated}${subscribers}
    addressed as materialized (
        select e.id, e.seq, e.collector, e.type, e.state, e.selective${reason} from scanwire.exporters e
        where
            (${takes} and not e.selective and e.type in (select unnest(i.types) from input i))
            or e.id in (select i.exporter_id from input i)${or}
        order by e.id
        for key share
    ),
    targets as materialized (
        select t.*, ${ranked} as rank
        from (${numbered}
            select i.index, i.id as event_id, i.exporter_id is not null as single, e.id as exporter_id, e.seq, e.collector${flag}
            from input i
            join addressed e
                on e.id = i.exporter_id
                or (i.exporter_id is null and ${takes} and not e.selective and e.type = any (i.types))${union}
        ${end}) t${blocked}
    ),
    verdicts as materialized (
        select
            ${conflicting} as conflicting,
            revision <> (select s.revision from scanwire.subscriptions s) is true as outdated,
            exists (
                select from input i
                where i.exporter_id is not null and not exists (select from targets t where t.index = i.index)
            ) as missing,
            exists (select from scanwire.events v join input i on i.id = v.id)
                or (select count(*) > count(distinct i.id) from input i) as duplicate
    ),
    verdict as (
        select v.*, not v.outdated and not v.missing and not v.duplicate and not v.conflicting as accepts from verdicts v
    ),
    rooms as materialized (
        select r.exporter_id, r.generation, least(r.share - r.flying, r.pool_room) as places
        from scanwire.rooms_of((select array_agg(a.id) from addressed a), at, max_in_flight, breaker_after, default_slots, slow_after) r
        where
            begin_within is not null and r.steady and r.share > r.flying and r.pool_room > 0
            and not exists (
                select from (values (1::smallint), (2::smallint)) c (priority)
                cross join lateral (
                    select from scanwire.deliveries w
                    where
                        w.stage = 'waiting' and w.exporter_id = r.exporter_id and w.priority = c.priority and w.due_at <= at
                        and w.due_at >= coalesce(
                            (select m.due_from from scanwire.waiting_marks m where m.exporter_id = r.exporter_id and m.priority = c.priority),
                            '-infinity'
                        )
                    limit 1
                ) w
            )
    ),
    new_events as (
        insert into scanwire.events (id, kind, body, owner, created_at)
        select i.id, i.kind, i.body, i.owner, at
        from input i
        join verdict on accepts
    ),
    new_deliveries as (
        insert into scanwire.deliveries (event_id, exporter_id, due_at, priority, collector, state, queued_at, token, begin_by${columns})
        select
            t.event_id, t.exporter_id, at, case when t.single then 0${behind} else 1 end, t.collector,
            case${held} when g.granted then 'queued' else 'pending' end,
            case when g.granted then at end,
            case when g.granted then gen_random_uuid()::text end,
            case when g.granted then at + begin_within end${values}
        from targets t
        join verdict on accepts
        left join rooms r on r.exporter_id = t.exporter_id
        cross join lateral (select not t.single${granted} and t.rank <= coalesce(r.places, 0) as granted) g
        order by t.index, t.seq
        returning id, seq, event_id, exporter_id, collector, token, begin_by${returned}
    )${messages}${places}
    select a.outdated, a.missing, a.duplicate, a.conflicting, a.event_id, a.deliveries
    from (
        select
            i.index,
            verdict.outdated,
            verdict.missing,
            verdict.duplicate,
            verdict.conflicting,
            i.id as event_id,
            coalesce(
                json_agg(
                    json_build_object(
                        'id', d.id, 'exporterId', d.exporter_id, 'collector', d.collector, 'token', d.token,
                        'beginBy', extract(epoch from d.begin_by) * 1000, 'generation', r.generation,
                        'settings', coalesce((select p.generation from scanwire.deployment p), 0)
                    )
                    order by d.seq
                ) filter (where d.id is not null),
                '[]'
            ) as deliveries
        from input i
        cross join verdict
        left join new_deliveries d on d.event_id = i.id
        left join rooms r on r.exporter_id = d.exporter_id
        group by i.index, i.id, verdict.outdated, verdict.missing, verdict.duplicate, verdict.conflicting${answers}
    ) a
    order by a.index;
end
$$;
`;

const nothing = {
    keys: '',
    input: 'input',
    repeated: '',
    conflicting: 'false',
    answers: '',
    subscribers: '',
    or: '',
    union: '',
    messages: '',
};

/** Both ways to accept. */
const acceptance = (holding: Holding): string =>
    accept('accept_events', nothing, holding) + accept('accept_chosen_events', choosing(holding), holding);

/** Both ways to accept, which hold what is for exporters that were stopped by an outcome. For a later migration. */
export const holdingAcceptance: string = acceptance(held);

/**
 * What an exporter gets in order is known here by its key, and waits behind what is there. In a transaction of the application nothing is decided: that
 * it is behind another, is seen when it would be handed out.
 */
const ordered: Ordering = {
    declare: `
    ordering boolean := exists (select from scanwire.exporters e where e.ordered);
    deciding boolean := ordering and begin_within is not null;`,
    enter: `
    if ordering then
        perform scanwire.enter_order(array(select i.order_key from json_to_recordset(events) as i (order_key text)), deciding);
    end if;
`,
    column: ', order_key text',
    numbered: `
            select u.*, row_number() over (partition by u.exporter_id, u.order_key order by u.index) as turn
            from (`,
    end: ') u\n        ',
    ranked: 'b.blocked, row_number() over (partition by t.exporter_id, t.single, b.blocked order by t.index)',
    blocked: `
        cross join lateral (
            select
                deciding and t.order_key is not null and not t.held
                and (
                    t.turn > 1
                    or exists (
                        select from scanwire.order_places p where p.exporter_id = t.exporter_id and p.order_key = t.order_key
                    )
                ) as blocked
        ) b`,
    behind: ' when t.blocked then 3',
    columns: ', order_key',
    values: ',\n            t.order_key',
    returned: ', order_key, state',
    places: `,
    new_places as (
        insert into scanwire.order_places (exporter_id, order_key, seq, delivery_id, flying)
        select d.exporter_id, d.order_key, d.seq, d.id, d.state = 'queued'
        from new_deliveries d
        where d.order_key is not null and d.state <> 'held'
    )`,
};

/** The same for events with order keys of which an exporter is ordered. For a later migration. */
export const orderedAcceptance: string = accept(
    'accept_ordered_events',
    {
        ...choosing({ ...held, chosenFlag: `${held.chosenFlag}, case when ordering and e.ordered then c.order_key end` }),
        subscribers: choosing(held).subscribers.replace('as single, s.*', 'as single, i.order_key, s.*'),
    },
    {
        ...held,
        create: 'create',
        reason: `${held.reason}, e.ordered`,
        flag: `${held.flag}, case when ordering and e.ordered and i.exporter_id is null then i.order_key end as order_key`,
        granted: `${held.granted} and not t.blocked`,
    },
    ordered,
);

export const subscriptions: Migration = {
    id: '0012-subscriptions',
    sql: tables + acceptance(notHeld),
};
