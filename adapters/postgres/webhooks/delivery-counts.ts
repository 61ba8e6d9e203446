import { type OnWarning, processWarning } from '../../../lib/process-warning.ts';
import { isUuid } from '../../../lib/schema-validation.ts';
import type { Executor } from '../../../lib/transaction.ts';
import type { DeliveryFilter } from '../../../lib/webhooks/deliveries/deliveries.ts';
import { ENDED } from '../migrations/0076-counting-functions.ts';
import { prepared } from '../prepared.ts';

/**
 * The work begins at every tenth sweep (`every`) and goes on at each sweep until nothing is left. It takes so many rows at a time (`rows`), which
 * lasts some milliseconds.
 */
const FOLDS = { every: 10, rows: 5_000 } as const;

/** `$1` is the number of rows. */
const FOLD: string = prepared('select scanwire.fold_delivery_counts($1) as more');

/**
 * Adds the deliveries that have ended meanwhile to the numbers of the migration `0076-counts`, and counts those that were there before that
 * migration.
 *
 * @returns A function to call after each sweep. It seldom has something to do; it keeps few the rows that a count has to read besides the stored
 *     numbers. A failure is reported and keeps nobody from sending.
 */
export function countKeeping(db: Executor): (onWarning?: OnWarning) => Promise<void> {
    let sweeps = 0;
    let more = false;
    let reported = '';
    return async (onWarning = processWarning) => {
        sweeps += 1;
        if (!more && sweeps % FOLDS.every !== 0) {
            return;
        }
        try {
            const { rows } = await db.query<{ more: boolean }>(FOLD, [FOLDS.rows]);
            more = rows[0]?.more === true;
            reported = '';
        } catch (error) {
            more = false;
            const message = `Deliveries that have ended are not counted: ${error instanceof Error ? error.message : String(error)}`;
            if (message !== reported) {
                onWarning(message);
            }
            reported = message;
        }
    };
}

/** Deliveries that have not ended are counted one by one, each kind by an index that holds no others. One of these indexes begins with the exporter. */
const UNENDED: readonly (readonly [condition: string, order: string, byExporter: boolean])[] = [
    [`w.stage = 'waiting'`, 'w.exporter_id, w.priority, w.due_at, w.seq', true],
    [`w.stage = 'in flight' and w.flight >= (select l.last_value from scanwire.landed_flights l)`, 'w.flight', false],
    [`w.ended_as = 'held'`, 'w.ended_as, w.seq', false],
];

/** Deliveries that have ended but are in no stored number, since they are from before deliveries had the kind of their events. */
const KINDLESS: (typeof UNENDED)[number] = [`w.kind is null and w.state in ${ENDED}`, 'w.kind, w.seq', false];

const KIND = 'coalesce(w.kind, (select v.kind from scanwire.events v where v.id = w.event_id))';

interface Counted {
    /** Null while deliveries from before numbers were stored are not counted yet. */
    readonly ended: number | null;
    readonly unended: number;
    /** The largest number that was looked through of one group: those that wait, are in flight, are held, or have no kind. */
    readonly looked: number;
}

/**
 * How many deliveries the filter selects, from the stored numbers; null where they must be counted one by one.
 *
 * @param max Up to how many deliveries that have not ended are looked through.
 */
export async function countKept(db: Executor, filter: DeliveryFilter, max: number): Promise<number | null> {
    const values: unknown[] = [max];
    const conditions = conditionsOf(filter, (value) => `$${values.push(value)}`);
    const found = conditions.map(({ column, is }) => `${column === 'kind' ? KIND : `w.${column}`}${is}`);
    const ofOne = conditions.filter(({ column }) => column === 'exporter_id').map(({ column, is }) => `w.${column}${is}`);
    const looks = [...(filter.state === undefined ? UNENDED : []), KINDLESS].map(
        ([condition, order, byExporter]) => `
        union all
        select count(*) filter (where ${['true', ...found].join(' and ')})::integer, count(*)::integer
        from (
            select w.* from scanwire.deliveries w
            where ${[condition, ...(byExporter && filter.exporterId !== undefined ? ofOne : [])].join(' and ')}
            order by ${order} limit $1
        ) w`,
    );
    const ended = conditions.map(({ column, is }) => `n.${column === 'last_code' ? 'code' : column}${is}`);
    const sumOf = (table: string): string =>
        `coalesce((select sum(n.count) from scanwire.${table} n where ${['true', ...ended].join(' and ')}), 0)::double precision`;
    const { rows } = await db.query<Counted>(
        `select
            case
                when (select c.whole from scanwire.delivery_counting c)
                then ${sumOf('delivery_counts')} + ${sumOf('delivery_count_changes')}
            end as ended,
            sum(u.unended)::integer as unended,
            max(u.looked)::integer as looked
        from (select 0 as unended, least($1::integer, 0) as looked ${looks.join('')}) u`,
        values,
    );
    const { ended: counted, unended, looked } = rows[0] as Counted;
    return counted !== null && looked < max ? counted + unended : null;
}

interface Condition {
    /** Of deliveries. */
    readonly column: 'exporter_id' | 'kind' | 'last_code' | 'state';
    readonly is: string;
}

function conditionsOf(
    { exporterId, exporterIds, kind, state, outcome }: DeliveryFilter,
    parameter: (value: unknown) => string,
): readonly Condition[] {
    const equal = [
        ['kind', kind],
        ['last_code', outcome],
        ['state', state],
    ] as const;
    const exporters = [exporterIds, exporterId === undefined ? undefined : [exporterId]];
    return [
        ...equal.flatMap(([column, value]) => (value === undefined ? [] : [{ column, is: ` = ${parameter(value)}` }])),
        ...exporters.flatMap((ids) =>
            ids === undefined ? [] : [{ column: 'exporter_id' as const, is: ` = any (${parameter(ids.filter(isUuid))}::uuid[])` }],
        ),
    ];
}
