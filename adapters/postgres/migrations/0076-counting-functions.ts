import { webhooks } from './0002-webhooks.ts';
import { engine } from './0004-engine.ts';
import { sealedUrls } from './0011-sealed-urls.ts';
import { heldDeliveries } from './0025-held-deliveries.ts';
import { lastSuccesses } from './0035-last-successes.ts';
import { keepingPlan } from './0046-kept-plans.ts';
import { finishDelivered } from './0048-finish-delivered.ts';
import { single } from './0060-single.ts';
import { changed, replacing } from './0065-listed.ts';
import { replaysAsRetries } from './0073-replays-as-retries.ts';

/*
 * Of the migration `0076-counts`: the functions that end deliveries, replay many or cancel them, as they count what they change.
 */

/** Others wait or are in flight. What is held waits as well, and is added by whoever accepts. */
export const ENDED: string = `('delivered', 'exhausted', 'poisoned', 'cancelled', 'erased')`;

/** The number where a delivery `r` is one of those from before. */
export const UNSURE: string = 'case when r.seq < scanwire.first_counted() then r.seq end';

/** Counts rows that have what deliveries have. */
export const countingAll = (source: string, sign: '' | '-' = '', unsure: string = UNSURE, among: string = `in ${ENDED}`): string =>
    `insert into scanwire.delivery_count_changes (exporter_id, state, code, kind, seq, count)
        select r.exporter_id, r.state, r.last_code, r.kind, ${unsure}, ${sign}count(*)
        from ${source} r
        where r.kind is not null and r.state ${among}
        group by r.exporter_id, r.state, r.last_code, r.kind, ${unsure}`;

/** Of deliveries `d`, what counts. */
export const COLUMNS: string = 'd.exporter_id, d.state, d.last_code, d.kind, d.seq';

/** From this part on it adds all that it ends or replays. A setting of the function itself would need rights that only few roles have. */
const counting = (sql: string, from: string): string =>
    changed(sql, [from, `    perform set_config('scanwire.counted', 'yes', true);\n${from}`]).replaceAll(
        /^( +)return /gm,
        "$1perform set_config('scanwire.counted', '', true);\n$1return ",
    );

const finishSingle = changed(
    replacing(single.sql, 'finish_single_delivered'),
    ['    began timestamptz;\n', '    began timestamptz;\n    its_kind text;\n    its_seq bigint;\n'],
    [
        'returning d.attempts, d.claimed_at into attempt, began;',
        'returning d.attempts, d.claimed_at, d.kind, d.seq into attempt, began, its_kind, its_seq;',
    ],
    [
        '            return next 0;\n',
        `            if its_kind is not null then
                insert into scanwire.delivery_count_changes (exporter_id, state, code, kind, seq, count)
                values (
                    exporter, 'delivered', outcome_code, its_kind, case when its_seq < scanwire.first_counted() then its_seq end, 1
                );
            end if;
            return next 0;
`,
    ],
);

const countingDelivered = (source: string): string => countingAll(source, '', UNSURE, `= 'delivered'`);

/** What is moved on has been delivered, or has ended otherwise, or waits for its next try. */
const MOVED = `        from holders h
        where d.id = h.id
    ),
    recorded as (`;
const countingMoved = (sql: string): string =>
    changed(sql, [
        MOVED,
        MOVED.replace(
            '    ),',
            `        returning ${COLUMNS}
    ),
    counted as (
        ${countingDelivered('moved')}
    ),`,
        ),
    ]);

const finishAll = changed(
    replacing(finishDelivered.sql, 'finish_delivered'),
    [
        '    held integer[];\n',
        '    held integer[];\n    several boolean := cardinality(exporters) > 1;\n    theirs uuid[];\n    kinds text[];\n    seqs bigint[];\n',
    ],
    ['            i.*,\n', '            i.*,\n            d.exporter_id,\n            d.kind,\n            d.seq,\n'],
    [
        `    select coalesce(array_agg(h.index), '{}') into held\n    from holders h;\n`,
        `    select coalesce(array_agg(h.index), '{}'), array_agg(h.exporter_id) filter (where several), array_agg(h.kind), array_agg(h.seq)
    into held, theirs, kinds, seqs
    from holders h;

    -- Most have all in common: for a few rows the setting up of an aggregate costs as much as the work.
    if kinds is not null then
        if not several and kinds = array_fill(kinds[1], array[cardinality(kinds)]) and kinds[1] is not null
            and scanwire.first_counted() <= all (seqs)
        then
            insert into scanwire.delivery_count_changes (exporter_id, state, code, kind, count)
            values (exporters[1], 'delivered', 'delivered', kinds[1], cardinality(kinds));
        else
            with ended as (
                select coalesce(u.exporter_id, exporters[1]) as exporter_id, 'delivered' as state, 'delivered' as last_code, u.kind, u.seq
                from unnest(theirs, kinds, seqs) u (exporter_id, kind, seq)
            )
            ${countingAll('ended')};
        end if;
    end if;
`,
    ],
);

/** Those that end what waited or was on its way to somebody else. */
const LATE = `        update scanwire.deliveries d
        set
            attempts = coalesce(u.number, d.attempts),`;
const finish = changed(
    countingMoved(replacing(lastSuccesses.sql, 'finish_attempts')),
    [LATE, `        , delivered as (\n${LATE}`],
    [
        '        where d.id = m.id and (x.id is not null or u.id is not null);\n',
        `        where d.id = m.id and (x.id is not null or u.id is not null)
        returning d.exporter_id, case when x.id is not null then d.state end as state, d.last_code, d.kind, d.seq
        )
        ${countingDelivered('delivered')};
`,
    ],
);

/** Of processes from before grants. */
const recordOutcomes = changed(
    countingMoved(replacing(engine.sql, 'record_outcomes')),
    [
        "        update scanwire.deliveries d\n        set state = 'delivered',",
        "        , delivered as (\n        update scanwire.deliveries d\n        set state = 'delivered',",
    ],
    [
        '        from ended x\n        where d.id = x.id;\n',
        `        from ended x
        where d.id = x.id
        returning ${COLUMNS}
        )
        ${countingDelivered('delivered')};
`,
    ],
);

const removeExporter = changed(
    replacing(webhooks.sql, 'remove_exporter'),
    [
        `        where u.claimed
    )
    update scanwire.deliveries d`,
        `        where u.claimed
    ),
    ended as (
    update scanwire.deliveries d`,
    ],
    [
        '    where d.id = u.id;\n',
        `    where d.id = u.id
    returning ${COLUMNS}
    )
    ${countingAll('ended')};
`,
    ],
);

const cancelHeld = changed(
    replacing(heldDeliveries.sql, 'cancel_held_deliveries'),
    ['    update scanwire.deliveries d set', '    with ended as (\n    update scanwire.deliveries d set'],
    [
        `d.state = 'held';`,
        `d.state = 'held'
    returning ${COLUMNS}
    )
    ${countingAll('ended')};`,
    ],
);

const erase = changed(replacing(sealedUrls.sql, 'erase_event'), [
    `        returning d.id
    )
    select count(*) into count_of_ended from ended;`,
    `        returning ${COLUMNS}
    ),
    counted as (
        ${countingAll('ended')}
    )
    select count(*) into count_of_ended from ended;`,
]);

const advance = changed(
    replacing(replaysAsRetries.sql, 'advance_replays'),
    [
        '            select d.id\n            from scanwire.deliveries d\n',
        `            select d.id, ${COLUMNS}\n            from scanwire.deliveries d\n`,
    ],
    [
        '        replayed as (\n',
        `        counted as (
            ${countingAll('free', '-')}
        ),
        replayed as (
`,
    ],
);

/** In place of those from before. */
export const countingFunctions: readonly string[] = [
    finishSingle,
    finishAll,
    finish,
    keepingPlan('finish_attempts'),
    recordOutcomes,
    counting(removeExporter, '    with unfinished as materialized ('),
    counting(cancelHeld, '    with ended as ('),
    counting(erase, '    with unfinished as materialized ('),
    counting(advance, '    for replay in '),
];
