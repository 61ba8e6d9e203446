import { isUuid } from '../../../lib/schema-validation.ts';
import type { Executor } from '../../../lib/transaction.ts';
import type { SliceTally } from '../../../lib/webhooks/deliveries/activity.ts';
import {
    BACKLOG_AGES,
    type BacklogAge,
    type BreakerColumns,
    backlogOf,
    breakerOf,
    type ExporterHealth,
    MAX_COUNTED,
    type Overview,
    overviewOf,
} from '../../../lib/webhooks/exporters/exporter-health.ts';
import type { ExporterPageRequest } from '../../../lib/webhooks/exporters/exporter-lists.ts';
import type { Outcome } from '../../../lib/webhooks/outcomes/outcome.ts';
import { type Row, type Time, withDates } from '../database.ts';

/**
 * How exporters fare. `$1` are their ids, `$2` is a JSON array of ages, `$3` how many are counted at most. A first try is due when it is
 * accepted, or replayed singly, so that first tries of an age lie side by side in the index of waiting deliveries, and beside them those that wait
 * for their turn (priority 3). For a retry the event has to be looked up, unless it belongs to a replay and has not been queued since.
 */
const HEALTH = `
with clock as materialized (
    select scanwire.now() as at
),
ages as materialized (
    select a.age, clock.at - a.below * interval '1 ms' as since, clock.at - a.from * interval '1 ms' as until
    from clock
    cross join json_to_recordset($2::json) as a (age text, "from" double precision, below double precision)
),
flying as materialized (
    select d.exporter_id, count(*)::integer as count
    from (
        select d.exporter_id from scanwire.deliveries d
        where d.stage = 'in flight' and d.flight >= (select l.last_value from scanwire.landed_flights l) and d.priority > 0
        -- found first, or the planner may walk the index of all deliveries by exporter
        offset 0
    ) d
    group by d.exporter_id
)
select
    e.id,
    clock.at,
    e.failing_since as "failingSince",
    e.paused_until as "pausedUntil",
    e.probe_at as "probeAt",
    e.slow_start as "slowStart",
    case when s.at is null or s.at <= e.last_outcome_at then e.last_outcome else s.outcome end as "lastOutcome",
    greatest(s.at, e.last_outcome_at) as "lastOutcomeAt",
    coalesce(f.count, 0) as "inFlight",
    b.counted,
    b.more as "moreRetries"
from scanwire.exporters e
cross join clock
left join scanwire.last_successes s on s.exporter_id = e.id and s.at <= clock.at
left join flying f on f.exporter_id = e.id
cross join lateral (
    with retries as materialized (
        select case when d.queued_at is null then d.due_at else v.created_at end as created_at
        from (
            select d.event_id, d.due_at, d.queued_at from scanwire.deliveries d
            where d.stage = 'waiting' and d.exporter_id = e.id and d.priority = 2
            order by d.due_at, d.seq
            limit $3::integer + 1
        ) d
        join scanwire.events v on v.id = d.event_id
    ),
    turns as materialized (
        select
            case
                when d.round = 0 or d.queued_at is null then d.due_at
                -- a retry, behind another that was replayed
                else (select v.created_at from scanwire.events v where v.id = d.event_id)
            end as created_at
        from ages a
        cross join lateral (
            select d.event_id, d.due_at, d.queued_at, d.round from scanwire.deliveries d
            where
                d.stage = 'waiting' and d.exporter_id = e.id and d.priority = 3
                and d.due_at > coalesce(a.since, '-infinity') and d.due_at <= coalesce(a.until, 'infinity')
            order by d.due_at, d.seq
            limit $3::integer + 1
        ) d
        where
            -- also of one that is not ordered any more, until all is let go; of any other one look finds that there are none
            case
                when e.ordered then true
                else (
                    select true from scanwire.deliveries d
                    where d.stage = 'waiting' and d.exporter_id = e.id and d.priority = 3
                    order by d.due_at, d.seq
                    limit 1
                )
            end
    ),
    counted as (
        select a.age, f.count, f.oldest
        from ages a
        cross join lateral (
            select count(*)::integer as count, min(d.due_at) as oldest
            from (
                select d.due_at from scanwire.deliveries d
                where
                    d.stage = 'waiting' and d.exporter_id = e.id and d.priority = 1
                    and d.due_at > coalesce(a.since, '-infinity') and d.due_at <= coalesce(a.until, 'infinity')
                order by d.due_at, d.seq
                limit $3::integer + 1
            ) d
        ) f
        where f.count > 0
        union all
        select a.age, count(*)::integer, min(r.created_at)
        from ((select r.created_at, 2 as priority from retries r limit $3) union all select t.created_at, 3 from turns t) r
        join ages a on r.created_at > coalesce(a.since, '-infinity') and r.created_at <= coalesce(a.until, 'infinity')
        group by a.age, r.priority
    )
    select (select coalesce(json_agg(c), '[]') from counted c) as counted, (select count(*) > $3 from retries) as more
) b
where e.id = any ($1::uuid[])`;

/** Active deliveries, by state; `$1` how many of each stage are counted at most. */
const UNENDED = `
select s.state, count(*)::integer as count
from (
    (select 'pending' as state from scanwire.deliveries w where w.stage = 'waiting' limit $1)
    union all
    (
        select f.state from scanwire.deliveries f
        where f.stage = 'in flight' and f.flight >= (select l.last_value from scanwire.landed_flights l)
        limit $1
    )
) s
group by s.state`;

/** Exporters counted in groups of those that are alike, each group with one of their times. */
const ALIKE = `
select
    e.state = 'running' as running, count(*)::integer as count,
    min(e.paused_until) as "pausedUntil", min(e.probe_at) as "probeAt", min(e.slow_start) as "slowStart"
from scanwire.exporters e
group by e.state = 'running', e.paused_until is null, e.probe_at is null, e.slow_start is null`;

interface AlikeRow extends Row<BreakerColumns> {
    readonly running: boolean;
    readonly count: number;
}

const AGES = JSON.stringify(
    BACKLOG_AGES.map(([age, below], index) => ({
        age,
        from: index === 0 ? null : BACKLOG_AGES[index - 1]?.[1],
        below: Number.isFinite(below) ? below : null,
    })),
);

type TimesAndCounts = Pick<ExporterHealth, 'at' | 'failingSince' | 'pausedUntil' | 'inFlight'> & BreakerColumns;

interface HealthRow extends Row<TimesAndCounts> {
    readonly id: string;
    readonly lastOutcome: Pick<Outcome, 'code' | 'detail'> | null;
    readonly lastOutcomeAt: Time;
    readonly counted: readonly { readonly age: BacklogAge; readonly count: number; readonly oldest: string }[];
    readonly moreRetries: boolean;
}

/**
 * So many are looked through of several exporters in one statement. One of which more wait is asked for by itself: each may have ten thousand retries, which the
 * embedded database takes 0.1 s to look through, while everybody waits.
 */
const FEW = 200;

/** How each of these exporters fares, by its id. Ids that no exporter has are left out. */
export async function healths(db: Executor, ids: readonly string[]): Promise<ReadonlyMap<string, ExporterHealth>> {
    const found = new Map<string, ExporterHealth>();
    const most = ids.length === 1 ? MAX_COUNTED : FEW;
    for (const row of await healthRows(db, ids, most)) {
        const [whole] = waitMore(row, most) && most < MAX_COUNTED ? await healthRows(db, [row.id], MAX_COUNTED) : [row];
        if (whole !== undefined) {
            found.set(whole.id, healthFromRow(whole));
        }
    }
    return found;
}

async function healthRows(db: Executor, ids: readonly string[], most: number): Promise<readonly HealthRow[]> {
    return (await db.query<HealthRow>(HEALTH, [ids.filter(isUuid), AGES, most])).rows;
}

function waitMore({ counted, moreRetries }: Pick<HealthRow, 'counted' | 'moreRetries'>, most: number): boolean {
    return moreRetries || counted.some(({ count }) => count > most);
}

function healthFromRow({ id: _, lastOutcome, lastOutcomeAt, counted, moreRetries, ...row }: HealthRow): ExporterHealth {
    const more = waitMore({ counted, moreRetries }, MAX_COUNTED);
    const { probeAt, slowStart, ...times } = withDates<TimesAndCounts>(row, ['at', 'failingSince', 'pausedUntil', 'probeAt']);
    const capped = counted.map(({ age, count, oldest }) => ({ age, count: Math.min(count, MAX_COUNTED), oldest: new Date(oldest) }));
    return {
        ...times,
        ...breakerOf({ pausedUntil: times.pausedUntil, probeAt, slowStart }),
        lastOutcome: lastOutcome === null ? null : { ...lastOutcome, at: new Date(lastOutcomeAt) },
        backlog: backlogOf(capped, more),
    };
}

/** What became of the deliveries to each of these between each two of the bounds, by its id. */
export async function activityOfEach(
    db: Executor,
    ids: readonly string[],
    { bounds, max }: Pick<ExporterPageRequest, 'bounds' | 'max'>,
): Promise<ReadonlyMap<string, readonly SliceTally[]>> {
    const { rows } = await db.query<{ readonly id: string; readonly slices: readonly SliceTally[] }>(
        'select id, slices from scanwire.activity_of_each($1::timestamptz[], $2::uuid[], $3)',
        [bounds, ids, max],
    );
    return new Map(rows.map(({ id, slices }) => [id, slices]));
}

/** How much there is to do, and how the exporters are. Of each stage at most `limit` deliveries are counted. */
export async function countedIn(db: Executor, limit: number): Promise<Overview> {
    const deliveries = await db.query<{ state: string; count: number }>(UNENDED, [limit]);
    const { rows } = await db.query<AlikeRow>(ALIKE);
    const exporters = rows.map(({ running, count, ...columns }) => ({
        running,
        count,
        ...withDates<BreakerColumns>(columns, ['pausedUntil', 'probeAt']),
    }));
    return overviewOf(deliveries.rows, exporters);
}
