import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * Whoever waits for another that takes over the same key may find that nothing came of it: the other was refused, or the key has been removed. A list then took
 * the event of the other for stored, and answered with it. So it takes its keys until each of them is its own or leads to an event that is stored. With a fixed
 * snapshot, what another has changed is a serialisation failure, and what another has removed is free.
 */
const TAKEN_UNTIL_CLEAR = [
    [
        'at timestamptz := scanwire.now();',
        "at timestamptz := scanwire.now();\n    keyed bigint;\n    keys_at tid[] := '{}';\n    lost bigint;",
    ],
    [
        `    if exists (select from json_to_recordset(events) as i (key text) where i.key is not null) then
        insert into scanwire.idempotency_keys (owner, key, event_id, digest)
        select coalesce(i.owner, ''), i.key, i.id, i.digest
        from json_to_recordset(events) as i (id uuid, owner text, key text, digest text)
        where i.key is not null
        order by 1, 2
        on conflict do nothing;

        update scanwire.idempotency_keys k
        set event_id = i.id, digest = i.digest
        from json_to_recordset(events) as i (id uuid, owner text, key text, digest text)
        join scanwire.idempotency_keys r on r.owner = any (array[coalesce(i.owner, '')]) and r.key = i.key and r.event_id <> i.id
        where
            k.owner = any (array[coalesce(i.owner, '')]) and k.key = i.key and k.event_id = any (array[r.event_id])
            and (select v.id from scanwire.events v where v.id = r.event_id) is null;
    end if;
`,
        `    keyed := (select count(i.key) from json_to_recordset(events) as i (key text));
    while cardinality(keys_at) < keyed loop
        with written as (
            insert into scanwire.idempotency_keys as k (owner, key, event_id, digest)
            select coalesce(i.owner, ''), i.key, i.id, i.digest
            from json_to_recordset(events) as i (id uuid, owner text, key text, digest text)
            where i.key is not null
            order by 1, 2
            on conflict do nothing
            returning k.ctid as place
        )
        select keys_at || array(select w.place from written w) into keys_at;
        exit when cardinality(keys_at) = keyed;

        -- All others were there. Of some the event is not stored, and of some nothing is left by now.
        with free as materialized (
            select i.id, coalesce(i.owner, '') as owner, i.key, i.digest, k.event_id as earlier
            from json_to_recordset(events) as i (id uuid, owner text, key text, digest text)
            left join scanwire.idempotency_keys k on k.owner = any (array[coalesce(i.owner, '')]) and k.key = i.key
            where
                i.key is not null and k.ctid = any (keys_at) is not true
                and (select v.id from scanwire.events v where v.id = k.event_id) is null
            order by 2, 3
        ),
        taken as (
            update scanwire.idempotency_keys k
            set event_id = f.id, digest = f.digest
            from free f
            where k.owner = any (array[f.owner]) and k.key = f.key and k.event_id = any (array[f.earlier])
            returning k.ctid as place
        )
        select keys_at || array(select t.place from taken t), (select count(*) from free) - (select count(*) from taken) into keys_at, lost;
        exit when lost = 0;
    end loop;
`,
    ],
    // What was removed since a fixed snapshot is still seen, beside the row that took its place.
    [
        '    repeated as materialized (\n',
        `    own_keys as materialized (
        select k.owner, k.key from scanwire.idempotency_keys k where k.ctid = any (keys_at)
    ),
    repeated as materialized (
`,
    ],
    [
        'and k.key = a.key and k.event_id <> a.id\n',
        `and k.key = a.key and k.event_id <> a.id
        where not exists (select from own_keys o where o.owner = coalesce(a.owner, '') and o.key = a.key)
`,
    ],
    [
        `        join input i on i.id = n.event_id and i.key is not null
        where k.owner = any (array[coalesce(i.owner, '')]) and k.key = i.key
    )`,
        `        join input i on i.id = n.event_id and i.key is not null
        where k.owner = any (array[coalesce(i.owner, '')]) and k.key = i.key
    ),
    given_back as (
        delete from scanwire.idempotency_keys k
        where k.ctid = any (array(select p.place from verdict join unnest(keys_at) p (place) on not accepts))
    )`,
    ],
] as const;

/**
 * A key that is written before a refusal is told led to an event that was never stored, for as long as nobody took it over; and where its publisher, who routes
 * the event anew, came back without waiting for whoever did so meanwhile, both were stored. So a refusal takes its keys back: where they were written nobody has
 * seen them since.
 */
const GIVEN_BACK = '    delete from scanwire.idempotency_keys k where k.ctid = key_at;\n';

const SINGLY_GIVEN_BACK = ['    if is_outdated then\n', '    if not found then\n        duplicate := true;\n'].map(
    (refusal) => [refusal, refusal.replace('then\n', `then\n    ${GIVEN_BACK}`)] as const,
);

const sql = [
    ...['accept_chosen_events', 'accept_ordered_events'].map((name) => rewritten(name, TAKEN_UNTIL_CLEAR)),
    rewritten('accept_single_chosen_event', SINGLY_GIVEN_BACK),
].join('\n');

export const keysGivenBack: Migration = { id: '0085-keys-given-back', sql };
