import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * A replay went on past what another statement had locked for a moment, and was done without it. Now it goes on to just before the first of those, and is not done
 * while any was left out: the next step finds it again, unless it is none of the replay any more.
 */
const advance = rewritten('advance_replays', [
    ['    last_waiting bigint;\n', '    last_waiting bigint;\n    left_out_count integer;\n    first_left_out bigint;\n'],
    [
        `            returning d.id
        )
        select
`,
        `            returning d.id
        ),
        left_out as materialized (
            select c.seq, c.ended from chosen c where not exists (select from free f where f.id = c.id)
        )
        select
`,
    ],
    [
        `(select w.seq from waiting w order by w.due_at desc, w.seq desc limit 1)
        into found_count, last_ended, replayed_count, last_due, last_waiting;
`,
        `(select w.seq from waiting w order by w.due_at desc, w.seq desc limit 1),
            (select count(*) from left_out),
            (select min(l.seq) from left_out l where l.ended)
        into found_count, last_ended, replayed_count, last_due, last_waiting, left_out_count, first_left_out;
`,
    ],
    ['after_seq = coalesce(last_ended, r.after_seq)', 'after_seq = coalesce(first_left_out - 1, last_ended, r.after_seq)'],
    ['found_count * interval', '(found_count - left_out_count) * interval'],
    ['when found_count < room then', 'when found_count < room and left_out_count = 0 then'],
]);

/** A 2xx that comes late ended nothing where an outcome behind it, of the same call, ended its delivery in vain: those of who holds a claim are recorded first. */
const finish = rewritten('finish_attempts', [
    ['returning a.delivery_id, i.code\n', 'returning a.delivery_id, i.code, i.index\n'],
    ['u.id, u.token, u.code, u.outcome, u.began,\n', 'u.id, u.index, u.token, u.code, u.outcome, u.began,\n'],
    [
        `        ended as materialized (
`,
        `        taken as materialized (
            select l.delivery_id as id, l.index from late l where l.code = 'delivered'
            union all
            select u.id, u.index from unnamed u where u.code = 'delivered'
        ),
        ended as materialized (
`,
    ],
    [
        `                m.state in ('pending', 'queued', 'sending', 'poisoned')
                and (
                    m.id in (select l.delivery_id from late l where l.code = 'delivered')
                    or m.id in (select u.id from unnamed u where u.code = 'delivered')
                )
`,
        `                case
                    when m.state in ('pending', 'queued', 'sending', 'poisoned') then m.id in (select t.id from taken t)
                    when m.state = 'exhausted' then exists (
                        select from taken t
                        join json_to_recordset(outcomes) as i (index integer, id uuid) on i.id = t.id and i.index > t.index
                        where t.id = m.id and i.index = any (held)
                    )
                end
`,
    ],
]);

export const noneLeftOut: Migration = { id: '0118-none-left-out', sql: [advance, finish].join('\n') };
