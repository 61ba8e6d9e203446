import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/*
 * Where a clock was ahead and has been set back, rows tell times that are to come. Of these nothing follows: a recovery would make due at once whatever fails until
 * then, which used up its schedule, and a failure would keep all others until then from being counted.
 */

/** By another name than the column of `last_successes` has. */
const RECENT = [
    ['    second_ago timestamptz := at - ', '    its_time timestamptz := at;\n    second_ago timestamptz := at - '],
    ['and s.at > second_ago', 'and s.at > second_ago and s.at <= its_time'],
    ['or e.last_outcome_at > second_ago)', 'or (e.last_outcome_at > second_ago and e.last_outcome_at <= its_time))'],
] as const;

const recoveries = [
    rewritten('hand_out_due_deliveries', [
        [
            'w.due_at, x.recovered_at, w.due_at <= at or x.recovered_at is not null as is_due',
            `w.due_at, case when x.recovered_at <= at then x.recovered_at end as recovered_at,
            coalesce(w.due_at <= at or x.recovered_at <= at, false) as is_due`,
        ],
    ]),
    rewritten('forget_recoveries', [
        ['begin\n    update', 'declare\n    at timestamptz := scanwire.now();\nbegin\n    update'],
        ['d.queued_at < e.recovered_at\n', 'd.queued_at < e.recovered_at and e.recovered_at <= at\n'],
    ]),
];

const outcomes = [
    rewritten('apply_health', [
        ['(e.failed_at is null or o.claimed_at > e.failed_at)', '(e.failed_at is null or e.failed_at > at or o.claimed_at > e.failed_at)'],
        [
            "x.last_outcome_at > at - interval '1 second' is not true",
            "(x.last_outcome_at > at - interval '1 second' and x.last_outcome_at <= at) is not true",
        ],
    ]),
    rewritten('finish_attempts', [
        [
            "e.last_outcome_at > at - interval '1 second' is not true",
            "(e.last_outcome_at > at - interval '1 second' and e.last_outcome_at <= at) is not true",
        ],
    ]),
    rewritten('finish_delivered', RECENT),
    rewritten('finish_single_delivered', RECENT),
    rewritten('note_successes', [
        ['and s.at > second_ago)', 'and s.at > second_ago and s.at <= note_successes.at)'],
        ['where s.at <= second_ago', 'where s.at <= second_ago or s.at > note_successes.at'],
    ]),
];

/** What is taken for young has the walk stop before it: what comes behind it was not among what has deliveries left, so that its event was removed. */
const retention = rewritten('expire_deliveries', [
    ['                >= before,\n', '                between before and scanwire.now(),\n'],
]);

/** What has failed since it was paused has failed for none of the time before. */
const resumed = rewritten('resume_exporter', [
    ['(scanwire.now() - old.paused_at)', '(scanwire.now() - greatest(old.paused_at, new.failing_since))'],
]);

const sql = [...recoveries, ...outcomes, retention, resumed].join('\n');

export const timesToCome: Migration = { id: '0117-times-to-come', sql };
