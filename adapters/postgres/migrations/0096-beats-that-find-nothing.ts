import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/*
 * What finds nothing ends before the statement that would do something: to begin and end one of sixty nodes takes as long as all the rest of a look, and
 * where a few events come a second there are as many looks as events.
 */

/** Which exporters have something due is asked first, with the same marks as before. What comes after it takes the answer as it is. */
const handOut = rewritten('hand_out_due_deliveries', [
    [
        '    looks_through boolean;\n',
        `    looks_through boolean;
    due_exporters uuid[];
    due_priorities smallint[];
    due_first timestamptz[];
    recoveries timestamptz[];
`,
    ],
    ['    return query\n    with recursive stored as', '    with recursive stored as'],
    [
        `    due_classes as materialized (
        select w.exporter_id, w.priority, w.due_at, x.recovered_at
        from earliest_due w
`,
        `    due_classes as (
        select w.exporter_id, w.priority, w.due_at, x.recovered_at
        from earliest_due w
`,
    ],
    [
        `where w.due_at <= at or x.recovered_at is not null
    ),
    rooms as materialized (
`,
        `where w.due_at <= at or x.recovered_at is not null
    )
    select array_agg(c.exporter_id), array_agg(c.priority), array_agg(c.due_at), array_agg(c.recovered_at)
    into due_exporters, due_priorities, due_first, recoveries
    from due_classes c;
    if due_exporters is null then
        waits_for := '{}';
        return next;
        return;
    end if;

    return query
    with due_classes as materialized (
        select c.exporter_id, c.priority, c.due_at, c.recovered_at
        from unnest(due_exporters, due_priorities, due_first, recoveries) c (exporter_id, priority, due_at, recovered_at)
    ),
    rooms as materialized (
`,
    ],
    [
        `from scanwire.rooms_of(
            (select array_agg(c.exporter_id) from due_classes c), at, max_in_flight, breaker_after, default_slots, slow_after
        ) r
        where exists (select from due_classes)
`,
        'from scanwire.rooms_of(due_exporters, at, max_in_flight, breaker_after, default_slots, slow_after) r\n',
    ],
    [
        'where not exists (select from stored m where m.exporter_id = q.exporter_id and m.priority = q.priority)',
        'where not exists (select from scanwire.waiting_marks m where m.exporter_id = q.exporter_id and m.priority = q.priority)',
    ],
]);

/** Of none that is slow there is nothing to number anew. */
const raiseMark = rewritten('raise_mark_of_flights', [
    [
        `    with slow as materialized (
`,
        `    if lowest is null or lowest >= reached - 200 then
        return;
    end if;
    with slow as materialized (
`,
    ],
]);

const nothingFlies = (
    mark: string,
): string => `    if not exists (select from scanwire.deliveries d where d.stage = 'in flight' and d.flight >= ${mark}) then
`;

const takeBack = rewritten('take_back_grants', [
    [
        '    select min(s.spoken_at) into spoken',
        `${nothingFlies('(select l.last_value from scanwire.landed_flights l)')}        return 0;
    end if;
    select min(s.spoken_at) into spoken`,
    ],
]);

const sweep = rewritten('sweep_and_tell', [
    ['    return query\n', `${nothingFlies('mark')}        return;\n    end if;\n    return query\n`],
]);

export const beatsThatFindNothing: Migration = {
    id: '0096-beats-that-find-nothing',
    sql: [handOut, raiseMark, takeBack, sweep].join('\n'),
};
