import type { Executor } from '../../lib/transaction.ts';
import type { StoredExporter } from '../../lib/webhooks/exporter.ts';
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
} from '../../lib/webhooks/exporter-health.ts';
import type { ExporterStore } from '../../lib/webhooks/exporter-store.ts';
import type { ExporterNotice } from '../../lib/webhooks/notices.ts';
import { INTERRUPTIONS, interrupted, type Outcome } from '../../lib/webhooks/outcome.ts';
import { patchRefusal, storeRefusals } from '../../lib/webhooks/store-refusals.ts';
import { guarded, isUniqueViolation, type Row, type Time, uuidOrNull, withDates } from './database.ts';

type ExporterRow = Row<StoredExporter>;

/** Every field of a stored exporter, each a column, and whether it is a time. */
const EXPORTER_FIELDS: { readonly [Field in keyof StoredExporter]: 'value' | 'time' } = {
    id: 'value',
    name: 'value',
    url: 'value',
    collector: 'value',
    type: 'value',
    legacy: 'value',
    trust: 'value',
    signatures: 'value',
    schedule: 'value',
    headerNames: 'value',
    state: 'value',
    stopReason: 'value',
    pausedAt: 'time',
    consecutiveFailures: 'value',
    sealedSecret: 'value',
    previousSecrets: 'value',
    sealedHeaders: 'value',
    sealedFormatSecret: 'value',
    authentication: 'value',
    sealedAuthentication: 'value',
    kinds: 'value',
    filter: 'value',
    format: 'value',
    template: 'value',
    rate: 'value',
    ordered: 'value',
    afterExhausted: 'value',
    owner: 'value',
    createdAt: 'time',
    updatedAt: 'time',
};

const FIELDS = Object.keys(EXPORTER_FIELDS) as (keyof StoredExporter)[];
const TIMES = FIELDS.filter((field) => EXPORTER_FIELDS[field] === 'time');

/** A {@link StoredExporter} of exporters `e`. */
export const EXPORTER_COLUMNS: string = FIELDS.map((field) => `e.${columnOf(field)} as "${field}"`).join(', ');

/** The exporter of a row of {@link EXPORTER_COLUMNS}. */
export function exporterFromRow(row: ExporterRow): StoredExporter {
    const previousSecrets = row.previousSecrets.map(({ sealed, until }) => ({ sealed, until: new Date(until) }));
    return { ...withDates(row, TIMES), previousSecrets };
}

const SELECT = `select ${EXPORTER_COLUMNS} from scanwire.exporters e`;

/** One row at least, for the revision. */
const SUBSCRIBERS = `
select s.revision, scanwire.now() as at, ${EXPORTER_COLUMNS}
from scanwire.subscriptions s
left join scanwire.exporters e on e.selective and (e.state = 'running' or e.stop_reason is not null)
order by e.created_at, e.seq`;

interface SubscriberRow extends ExporterRow {
    readonly revision: string;
    readonly at: Time;
}

/** `$1` how many. */
const NOTICES = `
select
    n.id, n.exporter_id as "exporterId", n.kind, n.at, n.name, n.collector, n.owner, n.failures, n.failing_since as "failingSince", n.reason,
    n.last_outcome as "lastOutcome"
from scanwire.exporter_notices n
order by n.seq
limit $1`;

/** The breaker of an exporter that never failed. */
const CLOSED_BREAKER = `consecutive_failures = 0, ${['probe_at', 'failed_at', 'failing_since', 'paused_until', 'recovered_at', 'slow_start']
    .map((column) => `${column} = null`)
    .join(', ')}`;

/**
 * How an exporter fares. `$1` its id, `$2` a JSON array of ages, `$3` how many are counted at most. First tries are due when they are
 * accepted, so that those of an age lie side by side in the index of waiting deliveries; of retries the events have to be looked up.
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
retries as materialized (
    select v.created_at
    from (
        select d.event_id from scanwire.deliveries d
        where d.stage = 'waiting' and d.exporter_id = $1 and d.priority = 2
        order by d.due_at, d.seq
        limit $3::integer + 1
    ) d
    join scanwire.events v on v.id = d.event_id
),
counted as (
    select a.age, f.count, f.oldest
    from ages a
    cross join lateral (
        select count(*)::integer as count, min(d.due_at) as oldest
        from (
            select d.due_at from scanwire.deliveries d
            where
                d.stage = 'waiting' and d.exporter_id = $1 and d.priority = 1
                and d.due_at > coalesce(a.since, '-infinity') and d.due_at <= coalesce(a.until, 'infinity')
            order by d.due_at, d.seq
            limit $3::integer + 1
        ) d
    ) f
    where f.count > 0
    union all
    select a.age, count(*)::integer, min(r.created_at)
    from (select r.created_at from retries r limit $3) r
    join ages a on r.created_at > coalesce(a.since, '-infinity') and r.created_at <= coalesce(a.until, 'infinity')
    group by a.age
)
select
    clock.at,
    e.failing_since as "failingSince",
    e.paused_until as "pausedUntil",
    e.probe_at as "probeAt",
    e.slow_start as "slowStart",
    case when s.at is null or s.at <= e.last_outcome_at then e.last_outcome else s.outcome end as "lastOutcome",
    greatest(s.at, e.last_outcome_at) as "lastOutcomeAt",
    (
        select count(*)::integer from scanwire.deliveries d
        where
            d.stage = 'in flight' and d.flight >= (select l.last_value from scanwire.landed_flights l)
            and d.exporter_id = e.id and d.priority > 0
    ) as "inFlight",
    (select coalesce(json_agg(c), '[]') from counted c) as counted,
    (select count(*) > $3 from retries) as "moreRetries"
from scanwire.exporters e
cross join clock
left join scanwire.last_successes s on s.exporter_id = e.id
where e.id = $1`;

/** Deliveries that have not ended, by state; `$1` how many of each stage are counted at most. */
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

/** Exporters that are alike, each group with one of their times. */
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
    readonly lastOutcome: Pick<Outcome, 'code' | 'detail'> | null;
    readonly lastOutcomeAt: Time;
    readonly counted: readonly { readonly age: BacklogAge; readonly count: number; readonly oldest: string }[];
    readonly moreRetries: boolean;
}

function healthFromRow({ lastOutcome, lastOutcomeAt, counted, moreRetries, ...row }: HealthRow): ExporterHealth {
    const { probeAt, slowStart, ...times } = withDates<TimesAndCounts>(row, ['at', 'failingSince', 'pausedUntil', 'probeAt']);
    const more = moreRetries || counted.some(({ count }) => count > MAX_COUNTED);
    const most = counted.map(({ age, count, oldest }) => ({ age, count: Math.min(count, MAX_COUNTED), oldest: new Date(oldest) }));
    return {
        ...times,
        ...breakerOf({ pausedUntil: times.pausedUntil, probeAt, slowStart }),
        lastOutcome: lastOutcome === null ? null : { ...lastOutcome, at: new Date(lastOutcomeAt) },
        backlog: backlogOf(most, more),
    };
}

async function countedIn(db: Executor, limit: number): Promise<Overview> {
    const deliveries = await db.query<{ state: string; count: number }>(UNENDED, [limit]);
    const { rows } = await db.query<AlikeRow>(ALIKE);
    const exporters = rows.map(({ running, count, ...columns }) => ({
        running,
        count,
        ...withDates<BreakerColumns>(columns, ['pausedUntil', 'probeAt']),
    }));
    return overviewOf(deliveries.rows, exporters);
}

/** Exporters in `scanwire.exporters`. */
export function exporters(db: Executor): ExporterStore {
    async function get(id: string): Promise<StoredExporter | null> {
        const { rows } = await db.query<ExporterRow>(`${SELECT} where e.id = $1`, [uuidOrNull(id)]);
        return rows[0] === undefined ? null : exporterFromRow(rows[0]);
    }

    return {
        get,

        async insert(exporter) {
            const values = columnValues(exporter);
            const columns = Object.keys(values);
            const parameters = columns.map((_, index) => `$${index + 1}`);
            const sql = `insert into scanwire.exporters (${columns.join(', ')}) values (${parameters.join(', ')})`;
            try {
                await db.query(sql, Object.values(values));
            } catch (error) {
                throw isUniqueViolation(error) ? storeRefusals.exporterExists(error) : error;
            }
        },

        async list() {
            const { rows } = await db.query<ExporterRow>(`${SELECT} order by e.created_at, e.seq`);
            return rows.map(exporterFromRow);
        },

        async subscribers(tx) {
            const { rows } = await (tx === undefined ? db : guarded(tx)).query<SubscriberRow>(SUBSCRIBERS);
            const exporters = rows.filter(({ id }) => id !== null).map(({ revision: _, at: __, ...row }) => exporterFromRow(row));
            return { revision: Number(rows[0]?.revision), at: new Date(rows[0]?.at as Time), exporters };
        },

        async notices(limit) {
            const { rows } = await db.query<Row<ExporterNotice>>(NOTICES, [limit]);
            return rows.map((row) => withDates(row, ['at', 'failingSince']));
        },

        async forgetNotices(ids) {
            await db.query('delete from scanwire.exporter_notices where id = any ($1::uuid[])', [ids]);
        },

        async health(id) {
            const { rows } = await db.query<HealthRow>(HEALTH, [uuidOrNull(id), AGES, MAX_COUNTED]);
            return rows[0] === undefined ? null : healthFromRow(rows[0]);
        },

        overview: (limit) => countedIn(db, limit),

        async update(id, asked) {
            const { ifType, ifSecret, ifHeaders, ifFormatSecret, ifAuthentication, ifUrl, ...patch } = asked;
            const values = columnValues(patch);
            const assignments = [
                'updated_at = scanwire.now()',
                ...(patch.state === 'running' ? [CLOSED_BREAKER] : []),
                ...Object.keys(values).map((column, index) => `${column} = $${index + 11}`),
            ];
            const { rows } = await db.query<ExporterRow>(
                `update scanwire.exporters e set ${assignments.join(', ')}
                where e.id = $1 and e.type = coalesce($2, e.type) and e.sealed_secret = coalesce($3, e.sealed_secret)
                    and (not $4::boolean or e.sealed_headers is not distinct from $5) and e.url = coalesce($6, e.url)
                    and (not $7::boolean or e.sealed_authentication is not distinct from $8)
                    and (not $9::boolean or e.sealed_format_secret is not distinct from $10)
                returning ${EXPORTER_COLUMNS}`,
                [
                    uuidOrNull(id),
                    ifType ?? null,
                    ifSecret ?? null,
                    ifHeaders !== undefined,
                    ifHeaders ?? null,
                    ifUrl ?? null,
                    ifAuthentication !== undefined,
                    ifAuthentication ?? null,
                    ifFormatSecret !== undefined,
                    ifFormatSecret ?? null,
                    ...Object.values(values),
                ],
            );
            if (rows[0] !== undefined) {
                return exporterFromRow(rows[0]);
            }

            const found = await get(id);
            if (found === null) {
                throw storeRefusals.unknownExporter();
            }
            // The row was changed again since.
            throw patchRefusal(found, asked) ?? storeRefusals.exporterHeadersChanged();
        },

        async remove(id) {
            const outcome = JSON.stringify(interrupted(0, INTERRUPTIONS.removed));
            const sql = 'select scanwire.remove_exporter($1, scanwire.now(), $2) as removed';
            const { rows } = await db.query<{ removed: boolean }>(sql, [uuidOrNull(id), outcome]);
            return rows[0]?.removed ?? false;
        },
    };
}

/**
 * Column and parameter of each field that is set. Names of columns come from the table of fields only, never from the input; lists
 * and objects are JSON text, which both drivers pass on untouched.
 */
function columnValues(values: Partial<StoredExporter>): Record<string, unknown> {
    const set = FIELDS.filter((field) => values[field] !== undefined);
    return Object.fromEntries(set.map((field) => [columnOf(field), parameter(values[field])]));
}

/** `header_names` for `headerNames`. */
function columnOf(field: string): string {
    return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function parameter(value: unknown): unknown {
    return typeof value === 'object' && value !== null && !(value instanceof Date) ? JSON.stringify(value) : value;
}
