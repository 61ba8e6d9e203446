import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/*
 * Each step of a replay read all that waits for another try of its exporter, also what is none of it. Now a step looks there once nothing is left that has failed
 * for good, and goes on from where the last one came to. What is passed over is not lost: a replay ends when nothing is left before that either.
 */

const sql = `
alter table scanwire.replays add column waiting_due timestamptz, add column waiting_seq bigint;

-- What a replay has among what waits for another try: at most so many, those behind the last that it has taken first.
create function scanwire.replayable_waiting(replay scanwire.replays, max_rows bigint)
returns table (id uuid, event_id uuid, seq bigint, due_at timestamptz)
language sql
stable
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
    select w.id, w.event_id, w.seq, w.due_at
    from (
        (select d.id, d.event_id, d.seq, d.due_at, d.queued_at, d.attempts
        from scanwire.deliveries d
        where
            d.stage = 'waiting' and d.exporter_id = (replay).exporter_id and d.priority = 2
            and (d.due_at, d.seq) > (coalesce((replay).waiting_due, '-infinity'), coalesce((replay).waiting_seq, 0))
        order by d.due_at, d.seq)
        union all
        (select d.id, d.event_id, d.seq, d.due_at, d.queued_at, d.attempts
        from scanwire.deliveries d
        where
            d.stage = 'waiting' and d.exporter_id = (replay).exporter_id and d.priority = 2
            and (d.due_at, d.seq) <= ((replay).waiting_due, (replay).waiting_seq)
        order by d.due_at, d.seq)
    ) w
    where
        w.seq <= (replay).last_seq and w.queued_at >= (replay).failed_since and w.queued_at < (replay).created_at
        and (
            select a.finished_at > (replay).created_at from scanwire.attempts a where a.delivery_id = w.id and a.number = w.attempts
        ) is not true
    limit max_rows
$$;
`;

/** Only who counts all at once, in processes of before, asks for both. */
const chosen = rewritten('replayable_deliveries', [
    ["d.stage = 'waiting' and d.exporter_id = of_exporter", "max_rows is null and d.stage = 'waiting' and d.exporter_id = of_exporter"],
    [
        `
        and case
            when max_rows is null then true
            else (
                select a.finished_at > planned from scanwire.attempts a where a.delivery_id = d.id and a.number = d.attempts
            ) is not true
        end
    limit max_rows)`,
        ')',
    ],
]);

const advance = rewritten('advance_replays', [
    ['    last_ended bigint;\n', '    last_ended bigint;\n    last_due timestamptz;\n    last_waiting bigint;\n'],
    [
        `        with chosen as materialized (
            select f.*
            from scanwire.replayable_deliveries(
                replay.exporter_id, replay.failed_since, replay.created_at, replay.after_seq, replay.last_seq, room
            ) f
            order by not f.ended, f.seq
            limit room
        ),
`,
        `        with ended as materialized (
            select f.id, f.seq
            from scanwire.replayable_deliveries(
                replay.exporter_id, replay.failed_since, replay.created_at, replay.after_seq, replay.last_seq, room
            ) f
        ),
        waiting as materialized (
            select w.id, w.seq, w.due_at from scanwire.replayable_waiting(replay, room - (select count(*) from ended)) w
        ),
        chosen as materialized (
            select e.id, e.seq, true as ended, null::timestamptz as due_at from ended e
            union all
            select w.id, w.seq, false, w.due_at from waiting w
        ),
`,
    ],
    [
        `(select count(*) from replayed)
        into found_count, last_ended, replayed_count;
`,
        `(select count(*) from replayed),
            (select w.due_at from waiting w order by w.due_at desc, w.seq desc limit 1),
            (select w.seq from waiting w order by w.due_at desc, w.seq desc limit 1)
        into found_count, last_ended, replayed_count, last_due, last_waiting;
`,
    ],
    [
        'after_seq = coalesce(last_ended, r.after_seq),\n',
        `after_seq = coalesce(last_ended, r.after_seq),
            waiting_due = greatest(r.waiting_due, last_due),
            waiting_seq = case
                when (last_due, last_waiting) > (coalesce(r.waiting_due, '-infinity'), coalesce(r.waiting_seq, 0)) then last_waiting
                else r.waiting_seq
            end,
`,
    ],
]);

export const replaysGoOn: Migration = { id: '0108-replays-go-on', sql: [sql, chosen, advance].join('\n') };
