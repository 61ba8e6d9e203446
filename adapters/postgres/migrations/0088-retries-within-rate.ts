import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * Places for retries were kept of an exporter's window, which a rate of the deployment does not reach: with fewer deliveries a second than those places, first tries
 * got none as long as retries were due; and where others had first tries, who had but retries got none. With such a rate retries have an eighth of what may be
 * handed out, of all exporters together, and that comes first. By lot, as a rate is asked for once a second, and a part of each second would be the same each time.
 */
const handOut = rewritten('hand_out_due_deliveries', [
    [
        '    eighth integer;\n',
        `    eighth integer;
    -- how many retries come before first tries where there is a rate of the deployment; else null
    early_retries integer;
`,
    ],
    [
        '    eighth := turn / 100 % 8;\n',
        `    eighth := turn / 100 % 8;
    if current_setting('scanwire.rated', true) = 'yes' then
        eighth := hashtextextended('scanwire.retries', turn) & 7;
        early_retries := (max_rows + eighth) / 8;
    end if;
`,
    ],
    [
        '    ranked as (\n        select\n            w.*,\n',
        `    early as materialized (
        select w.id from waiting w
        where early_retries is not null and w.priority = 2 and w.class_rank <= least(w.retry_room, w.room) and w.pool_room > 0
        order by w.class_rank, hashtextextended(w.exporter_id::text, turn)
        limit early_retries
    ),
    ranked as (
        select
            w.*,
            e.id is not null as early,
`,
    ],
    [
        `order by w.priority > 0, w.priority = 1 or w.class_rank > w.retry_room, w.priority, w.due_at, w.seq
            ) as rank
        from waiting w
`,
        `order by
                    w.priority > 0,
                    case when early_retries is null then w.priority = 1 or w.class_rank > w.retry_room else e.id is null end,
                    w.priority, w.due_at, w.seq
            ) as rank
        from waiting w
        left join early e on e.id = w.id
`,
    ],
    [
        'order by p.priority > 0, p.rank, p.priority, p.due_at, p.seq',
        'order by p.priority > 0, not p.early, p.rank, p.priority, p.due_at, p.seq',
    ],
]);

const atRate = rewritten('hand_out_at_rate', [
    ['    return query\n', "    perform set_config('scanwire.rated', 'yes', true);\n    return query\n"],
    [
        '    get diagnostics told = row_count;\n',
        "    get diagnostics told = row_count;\n    perform set_config('scanwire.rated', '', true);\n",
    ],
]);

export const retriesWithinRate: Migration = { id: '0088-retries-within-rate', sql: `${handOut}\n${atRate}` };
