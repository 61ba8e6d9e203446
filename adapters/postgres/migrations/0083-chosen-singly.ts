import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * Keys of the caller's are looked up by owner and key. Of `any (array[…])` on the second column of an index PostgreSQL before 17 makes a filter where it
 * expects a single row, and reads all keys of the owner. On the first alone it does not, and still no order follows from it by which all of them could be walked.
 */
const LOOKED_UP = ['i', 'a'].map((row) => [`k.key = any (array[${row}.key])`, `k.key = ${row}.key`] as const);

/**
 * Who waited for another that takes over the same key judged its new row by what was there before: the event of the other was not, and both were stored. So the
 * row must be of the event that was looked for.
 */
const TAKEN_OVER = [
    [
        `digest text)
        where
            k.owner = any (array[coalesce(i.owner, '')]) and k.key = i.key and k.event_id <> i.id
            and (select v.id from scanwire.events v where v.id = k.event_id) is null;`,
        `digest text)
        join scanwire.idempotency_keys r on r.owner = any (array[coalesce(i.owner, '')]) and r.key = i.key and r.event_id <> i.id
        where
            k.owner = any (array[coalesce(i.owner, '')]) and k.key = i.key and k.event_id = any (array[r.event_id])
            and (select v.id from scanwire.events v where v.id = r.event_id) is null;`,
    ],
] as const;

/**
 * One event with a key of the caller's, or for exporters that chose it, as accept_chosen_events accepts several: made of accept_single_event, so that what it has
 * room for is told by the same text. `chosen` are the exporters beside those of the types, `messages` those that get another body than the event's, as
 * { exporter_id, content_type, headers, body, failure }. Answers with the deliveries; of none with one row where there is anything else to say.
 */
const acceptSingleChosen = rewritten('accept_single_event', [
    ['FUNCTION scanwire.accept_single_event(', 'FUNCTION scanwire.accept_single_chosen_event('],
    ['wanted text[], ', 'wanted text[], chosen uuid[], messages json, event_key text, key_digest text, '],
    ['RETURNS TABLE(outdated boolean, ', 'RETURNS TABLE(outdated boolean, conflicting boolean, duplicate boolean, accepted_as uuid, '],
    [
        '    is_outdated boolean;\n',
        `    -- of which no column has the name
    new_id uuid := event_id;
    key_owner text := coalesce(event_owner, '');
    key_at tid;
    earlier uuid;
    earlier_deliveries json;
    earlier_differs boolean;
    earlier_is_kept boolean;
    delivery_ids uuid[];
    is_outdated boolean;
`,
    ],
    [
        '    -- One snapshot: who has begun',
        `    -- Before the exporters: whoever waits for a key keeps nobody from them, and none that is stopped meanwhile gets anything.
    if event_key is not null then
        loop
            insert into scanwire.idempotency_keys as k (owner, key, event_id, digest) values (key_owner, event_key, new_id, key_digest)
            on conflict do nothing
            returning k.ctid into key_at;
            exit when found;

            select k.event_id, k.deliveries, k.digest <> key_digest, (select v.id from scanwire.events v where v.id = k.event_id) is not null
            into earlier, earlier_deliveries, earlier_differs, earlier_is_kept
            from scanwire.idempotency_keys k
            where k.owner = key_owner and k.key = event_key;
            -- Retention has removed it since.
            continue when not found;
            exit when earlier_is_kept;

            -- Its event is gone, or was never stored. Whoever takes the key over in the same moment is waited for, and then it is looked at again.
            update scanwire.idempotency_keys k
            set event_id = new_id, digest = key_digest
            where k.owner = key_owner and k.key = event_key and k.event_id = earlier
            returning k.ctid into key_at;
            exit when found;
        end loop;

        if key_at is null and earlier <> new_id then
            return query
            select
                revision <> (select s.revision from scanwire.subscriptions s) is true, earlier_differs, false, earlier, (d.value->>'id')::uuid,
                null::uuid, null, null, null::timestamptz, null::integer, null::integer
            from (values (1)) one
            left join json_array_elements(earlier_deliveries) d on true;
            return;
        end if;
    end if;

    -- One snapshot: who has begun`,
    ],
    ['array_agg(x.id), array_agg(x.collector),', 'array_agg(x.id), array_agg(gen_random_uuid()), array_agg(x.collector),'],
    ['into is_outdated, receiving, collectors,', 'into is_outdated, receiving, delivery_ids, collectors,'],
    ['not e.selective and e.type = any (wanted)\n', '(not e.selective and e.type = any (wanted) or e.id = any (chosen))\n'],
    [
        'values (event_id, event_kind, event_body, event_owner, at);\n',
        `values (event_id, event_kind, event_body, event_owner, at)
    on conflict do nothing;
    if not found then
        duplicate := true;
        return next;
        return;
    end if;
`,
    ],
    ['deliveries as d (event_id,', 'deliveries as d (id, event_id,'],
    ['    select\n        event_id, event_kind, at,', '    select\n        e.delivery_id, event_id, event_kind, at,'],
    [
        'unnest(receiving, collectors, holding, places) e (id, collector,',
        'unnest(delivery_ids, receiving, collectors, holding, places) e (delivery_id, id, collector,',
    ],
    ['        false, d.id, d.exporter_id,', '        false, false, false, d.event_id, d.id, d.exporter_id,'],
    [
        'settings_generation;\nend',
        `settings_generation;

    if messages is not null then
        insert into scanwire.delivery_messages (delivery_id, event_id, content_type, headers, body, failure)
        select distinct on (m.exporter_id)
            delivery_ids[array_position(receiving, m.exporter_id)], new_id, m.content_type, m.headers, m.body, m.failure
        from rows from (
            json_to_recordset(messages) as (exporter_id uuid, content_type text, headers json, body text, failure text)
        ) with ordinality m
        where m.exporter_id = any (receiving)
        order by m.exporter_id, m.ordinality;
    end if;

    if key_at is not null and receiving is not null then
        -- Where it was written above: nobody else has seen it since.
        update scanwire.idempotency_keys k
        set deliveries = (select json_agg(json_build_object('id', d.id, 'token', null)) from unnest(delivery_ids) d (id))
        where k.ctid = key_at;
    end if;
end`,
    ],
]);

const sql = [
    ...['accept_chosen_events', 'accept_ordered_events'].map((name) => rewritten(name, [...LOOKED_UP, ...TAKEN_OVER])),
    acceptSingleChosen,
].join('\n');

export const chosenSingly: Migration = { id: '0083-chosen-singly', sql };
