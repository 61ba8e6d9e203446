import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/*
 * A replay of many takes what had failed when it was planned. It took what failed afterwards as well, some of which it had replayed itself, and passed its
 * total.
 */

/** Who counts or plans looks at what has failed by now. Only the steps that follow meet attempts that have ended since. */
const chosen = rewritten('replayable_deliveries', [
    [
        "and case when since is null then d.state = 'held' else d.state in ('exhausted', 'poisoned') and d.finished_at >= since end",
        `and case
            when since is null then d.state = 'held'
            else d.state in ('exhausted', 'poisoned') and d.finished_at >= since and d.finished_at <= planned
        end`,
    ],
    [
        'and d.queued_at >= since and d.queued_at < planned\n',
        `and d.queued_at >= since and d.queued_at < planned
        and case
            when max_rows is null then true
            else (
                select a.finished_at > planned from scanwire.attempts a where a.delivery_id = d.id and a.number = d.attempts
            ) is not true
        end
`,
    ],
]);

/**
 * Once it has replayed all that had ended it looks for no more of it: what ends from then on is none of it, and may be much. The total has those too that
 * had failed, and were recorded a moment after it was planned.
 */
const advance = rewritten('advance_replays', [
    [
        '(select max(c.seq) from chosen c where c.ended)',
        '(select case when count(*) < room then replay.last_seq else max(c.seq) end from chosen c where c.ended)',
    ],
    ['done = r.done + replayed_count,', 'total = greatest(r.total, r.done + replayed_count),\n            done = r.done + replayed_count,'],
]);

export const whatHadFailed: Migration = { id: '0099-what-had-failed', sql: `${chosen}\n${advance}` };
