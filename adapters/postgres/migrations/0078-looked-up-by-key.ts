import type { Migration } from '../migrate.ts';

/**
 * Rows are looked up by their keys, however few there were when a connection planned: as long as the planner takes a table for a handful of rows,
 * it joins by walking all of an index, and goes on doing so until the next analysis, with thousands of rows by then. `id = any (array[…])` can only be
 * looked up: neither an order of rows nor a join of two ordered lists follows from it. Where rows are ordered before they are locked, it is by the
 * column of the list for the same reason, and what is counted by exporter is found first (`offset 0`).
 */
const LOOKED_UP: Readonly<Record<string, readonly (readonly [part: string, by: string])[]>> = {
    rooms_of: [
        [
            `        from scanwire.deliveries d
        where d.stage = 'in flight' and d.flight >= (select l.last_value from scanwire.landed_flights l)
        group by d.exporter_id`,
            `        from (
            select d.exporter_id, d.priority, d.state, d.claimed_at
            from scanwire.deliveries d
            where d.stage = 'in flight' and d.flight >= (select l.last_value from scanwire.landed_flights l)
            offset 0
        ) d
        group by d.exporter_id`,
        ],
        ['join scanwire.exporters e on e.id = x.exporter_id', 'join scanwire.exporters e on e.id = any (array[x.exporter_id])'],
    ],
    ...Object.fromEntries(
        ['accept_events', 'accept_chosen_events', 'accept_ordered_events'].map((name) => [
            name,
            [
                [
                    'exists (select from scanwire.events v join input i on i.id = v.id)',
                    'exists (select from input i where (select v.id from scanwire.events v where v.id = i.id) is not null)',
                ],
                ...(name === 'accept_events' ? [] : byIdempotencyKey()),
            ],
        ]),
    ),
    claim_attempts: [
        ['join scanwire.deliveries d on d.id = a.id', 'join scanwire.deliveries d on d.id = any (array[a.id])'],
        ['order by d.id\n        for update of d', 'order by a.id\n        for update of d'],
        ['join scanwire.events v on v.id = a.event_id', 'join scanwire.events v on v.id = any (array[a.event_id])'],
        ['join scanwire.exporters e on e.id = a.exporter_id', 'join scanwire.exporters e on e.id = any (array[a.exporter_id])'],
        ['m on m.delivery_id = a.id', 'm on m.delivery_id = any (array[a.id])'],
        ['where d.id = f.id and', 'where d.id = any (array[f.id]) and'],
    ],
    finish_delivered: [
        ['join scanwire.deliveries d on d.id = i.id', 'join scanwire.deliveries d on d.id = any (array[i.id])'],
        ['order by d.id\n        for update of d', 'order by i.id\n        for update of d'],
        ['where d.id = h.id', 'where d.id = any (array[h.id])'],
    ],
    finish_attempts: [
        [') i on i.exporter_id = e.id\n', ') i on e.id = any (array[i.exporter_id])\n'],
        ['order by e.id\n        for no key update of e', 'order by i.exporter_id\n        for no key update of e'],
        ['join scanwire.deliveries d on d.id = i.id', 'join scanwire.deliveries d on d.id = any (array[i.id])'],
        ['order by d.id\n        for update of d', 'order by i.id\n        for update of d'],
        ['where d.id = h.id', 'where d.id = any (array[h.id])'],
        [
            `            from scanwire.deliveries d
            where d.id in (
                select i.id from json_to_recordset(outcomes) as i (index integer, id uuid) where not i.index = any (coalesce(held, '{}'))
            )
            order by d.id
            for update
`,
            `            from (
                select distinct i.id from json_to_recordset(outcomes) as i (index integer, id uuid)
                where not i.index = any (coalesce(held, '{}'))
            ) i
            join scanwire.deliveries d on d.id = any (array[i.id])
            order by i.id
            for update of d
`,
        ],
        ['a.delivery_id = m.id and', 'a.delivery_id = any (array[m.id]) and'],
        ['where d.id = m.id and', 'where d.id = any (array[m.id]) and'],
    ],
    note_successes: [
        ['join scanwire.exporters e on e.id = d.exporter_id', 'join scanwire.exporters e on e.id = any (array[d.exporter_id])'],
    ],
    apply_health: [
        [') i on i.exporter_id = x.id\n', ') i on x.id = any (array[i.exporter_id])\n'],
        ['order by x.id\n', 'order by i.exporter_id\n'],
    ],
    keep_responses: [
        [
            `        from scanwire.deliveries d
        join scanwire.events v on v.id = d.event_id
        where d.id in (select g.delivery_id from given g) and v.erased_at is null
        order by v.id
`,
            `        from (select distinct g.delivery_id from given g) g
        join scanwire.deliveries d on d.id = any (array[g.delivery_id])
        join scanwire.events v on v.id = any (array[d.event_id])
        where v.erased_at is null
        order by d.event_id
`,
        ],
    ],
    keep_session_alive: [
        ['join scanwire.deliveries d on d.id = b.id', 'join scanwire.deliveries d on d.id = any (array[b.id])'],
        ['order by d.id\n', 'order by b.id\n'],
        ['where d.id = n.id', 'where d.id = any (array[n.id])'],
    ],
    sweep_and_tell: [
        ['where d.id = j.id', 'where d.id = any (array[j.id])'],
        ['where d.id = l.id', 'where d.id = any (array[l.id])'],
        ['e on e.id = r.exporter_id', 'e on e.id = any (array[r.exporter_id])'],
    ],
    hand_out_due_deliveries: [
        ['join scanwire.exporters x on x.id = w.exporter_id', 'join scanwire.exporters x on x.id = any (array[w.exporter_id])'],
        [
            `'stage' here: after a quiet time the planner takes the index of waiting rows for empty, and would walk all of it per row. The keys
    -- are named as a list besides, since a join alone may walk the index of all keys that there are.`,
            "'stage' here: after a quiet time the planner takes the index of waiting rows for empty, and would walk all of it per row.",
        ],
        ['join scanwire.deliveries d on d.id = p.id', 'join scanwire.deliveries d on d.id = any (array[p.id])'],
        ["where d.state = 'pending' and d.id = any (array(select p.id from picked p))", "where d.state = 'pending'"],
        ['where d.id = f.id and d.id = any (array(select f.id from free f))', 'where d.id = any (array[f.id])'],
    ],
    advance_replays: [
        ['join scanwire.events v on v.id = d.event_id', 'join scanwire.events v on v.id = any (array[d.event_id])'],
        ['where d.id = f.id', 'where d.id = any (array[f.id])'],
    ],
    release_order: [['where d.id = r.delivery_id', 'where d.id = any (array[r.delivery_id])']],
};

function byIdempotencyKey(): readonly (readonly [part: string, by: string])[] {
    return [
        [
            "k.owner = coalesce(i.owner, '') and k.key = i.key",
            "k.owner = any (array[coalesce(i.owner, '')]) and k.key = any (array[i.key])",
        ],
        [
            "k.owner = coalesce(a.owner, '') and k.key = a.key",
            "k.owner = any (array[coalesce(a.owner, '')]) and k.key = any (array[a.key])",
        ],
        [
            'not exists (select from scanwire.events v where v.id = k.event_id)',
            '(select v.id from scanwire.events v where v.id = k.event_id) is null',
        ],
    ];
}

/** Replaces each part of the text of a function, wherever it stands, and leaves all else as it is. @throws in the database for a part that is not there. */
export function rewritten(name: string, changes: readonly (readonly [part: string, by: string])[]): string {
    const steps = changes.map(
        ([part, by]) => `
    if position($part$${part}$part$ in definition) = 0 then
        raise exception 'Function ${name} has no such part: %', $part$${part}$part$;
    end if;
    definition := replace(definition, $part$${part}$part$, $part$${by}$part$);`,
    );
    return `
do $rewriting$
declare
    definition text := pg_get_functiondef((
        select p.oid from pg_proc p where p.pronamespace = 'scanwire'::regnamespace and p.proname = '${name}'
    ));
begin${steps.join('')}
    execute definition;
end
$rewriting$;`;
}

const tracesOf = `
create function scanwire.traces_of(events uuid[])
returns table (event_id uuid, traceparent text)
language plpgsql
stable
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
    return query select t.event_id, t.traceparent from scanwire.traces t where t.event_id = any (events);
end
$$;
`;

const sql = [...Object.entries(LOOKED_UP).map(([name, changes]) => rewritten(name, changes)), tracesOf].join('\n');

export const lookedUpByKey: Migration = { id: '0078-looked-up-by-key', sql };
