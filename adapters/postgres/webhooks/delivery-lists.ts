import { isUuid } from '../../../lib/schema-validation.ts';
import type { Executor } from '../../../lib/transaction.ts';
import type { SliceCounts, SliceOptions } from '../../../lib/webhooks/deliveries/activity.ts';
import type { DeliveryFilter, DeliveryQuery } from '../../../lib/webhooks/deliveries/deliveries.ts';
import type { DeliveryState } from '../../../lib/webhooks/deliveries/delivery-states.ts';
import type { Delivery } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { isCountKept } from '../../../lib/webhooks/deliveries/kept-counts.ts';
import { MAX_COUNTED } from '../../../lib/webhooks/exporters/exporter-health.ts';
import { type Row, type Time, uuidOrNull, withDates } from '../database.ts';
import { countKept } from './delivery-counts.ts';

/** A `Delivery` of deliveries `d`, their events `v` and, where they still exist, exporters `e`. */
export const DELIVERY_COLUMNS = `d.id, d.event_id as "eventId", v.kind, d.exporter_id as "exporterId",
    coalesce(e.collector, d.collector) as collector, d.state, d.attempts, d.due_at as "dueAt", v.created_at as "createdAt",
    d.finished_at as "finishedAt", d.last_code as "lastCode"`;

/** The value of the column `stage` for each state: it tells which of the partial indexes holds the delivery. */
const STAGES: { readonly [State in DeliveryState]: string } = {
    pending: 'waiting',
    queued: 'in flight',
    sending: 'in flight',
    delivered: 'delivered',
    exhausted: 'failed',
    poisoned: 'failed',
    cancelled: 'failed',
    erased: 'failed',
    held: 'failed',
};

/** The newest deliveries that a query asks for. */
export async function listDeliveries(db: Executor, { limit, ...filter }: DeliveryQuery): Promise<readonly Delivery[]> {
    if (await isKnownEmpty(db, filter)) {
        return [];
    }

    const lastOld = await lastOldOf(db, filter);
    return await withinSpans(db, filter, async (span) => {
        const { source, values } = chosenBy(filter, span, limit, { newest: true, lastOld });
        const { rows } = await db.query<Row<Delivery>>(
            `select ${DELIVERY_COLUMNS}
            from (select d.* from (${source}) d order by d.seq desc limit $1) d
            join scanwire.events v on v.id = d.event_id
            left join scanwire.exporters e on e.id = d.exporter_id
            order by d.seq desc`,
            values,
        );
        return rows.map(deliveryFromRow);
    });
}

/**
 * Whether the stored numbers say that there are none. What one condition selects is found by an index, or is everywhere; of two that are both
 * frequent and never meet, all that has one would be read to say so.
 */
async function isKnownEmpty(db: Executor, { since, until, after, ...filter }: DeliveryFilter): Promise<boolean> {
    const { state, exporterId, exporterIds = exporterId, kind, outcome } = filter;
    const conditions = [state, exporterIds, kind, outcome].filter((condition) => condition !== undefined);
    return conditions.length > 1 && isCountKept(filter) && (await countKept(db, filter, MAX_COUNTED)) === 0;
}

/** How many deliveries the filter selects; at most `max` where they have to be counted one by one. */
export async function countDeliveries(db: Executor, filter: DeliveryFilter, max: number): Promise<number> {
    const kept = isCountKept(filter) ? await countKept(db, filter, max) : null;
    return kept ?? (await countOneByOne(db, filter, max));
}

async function countOneByOne(db: Executor, filter: DeliveryFilter, max: number): Promise<number> {
    const lastOld = await lastOldOf(db, filter);
    const [counted = 0] = await withinSpans(db, filter, async (span) => {
        const { source, values } = chosenBy(filter, span, max, { newest: false, lastOld });
        const sql = `select count(*)::integer as count from (select from (${source}) d limit $1) d`;
        const { rows } = await db.query<{ count: number }>(sql, values);
        return rows.flatMap(({ count }) => (count === 0 ? [] : [count]));
    });
    return counted;
}

/** What became of the deliveries between each two times. */
export async function countSlices(
    db: Executor,
    bounds: readonly Date[],
    { exporterId, exporterIds = exporterId === undefined ? undefined : [exporterId], max }: SliceOptions,
): Promise<readonly SliceCounts[]> {
    const { rows } = await db.query<Omit<SliceCounts, 'latency'> & { p50: number | null; p95: number | null }>(
        'select deliveries, delivered, failed, p50, p95 from scanwire.activity($1::timestamptz[], $2::uuid[], $3)',
        [bounds, exporterIds?.filter(isUuid) ?? null, max],
    );
    return rows.map(({ p50, p95, ...counts }) => ({ ...counts, latency: p50 === null || p95 === null ? null : { p50, p95 } }));
}

/** A {@link Delivery} of a row of {@link DELIVERY_COLUMNS}. */
export function deliveryFromRow(row: Row<Delivery>): Delivery {
    return withDates(row, ['dueAt', 'createdAt', 'finishedAt']);
}

/** A range of the numbers (`seq`) that deliveries have. */
export interface Span {
    readonly first: string | null;
    readonly end: string | null;
}

/**
 * Milliseconds within which a delivery gets its number after the time of its event. Rarely there is a wait in between, for an open transaction
 * with the same idempotency key, and it is no longer than this.
 */
export const SOON = 10_000;
/** However long it has waited. */
export const LATE = 3_600_000;

/**
 * Looks for times by the numbers of deliveries, and for the deliveries of an event by its time: an index of times or of events would cost every
 * delivery an entry.
 *
 * @param read Reads what is asked for within a range of numbers. Where that finds nothing of an event, it is called once more with a larger
 *     range.
 */
export async function withinSpans<T>(
    db: Executor,
    filter: Pick<DeliveryFilter, 'eventId' | 'since' | 'until' | 'after'>,
    read: (span: Span) => Promise<readonly T[]>,
): Promise<readonly T[]> {
    const { eventId, since, until } = filter;
    if (eventId === undefined) {
        return await read(await spanOf(db, since, until, SOON));
    }

    const sql = 'select v.created_at as "createdAt" from scanwire.events v where v.id = $1';
    const { rows } = await db.query<{ createdAt: Time }>(sql, [uuidOrNull(eventId)]);
    if (rows[0] === undefined) {
        return [];
    }
    const createdAt = new Date(rows[0].createdAt);
    const found = await read(await spanOf(db, createdAt, createdAt, SOON));
    return found.length > 0 || filter.after !== undefined ? found : await read(await spanOf(db, createdAt, createdAt, LATE));
}

async function spanOf(db: Executor, since: Date | undefined, until: Date | undefined, slack: number): Promise<Span> {
    return {
        first: since === undefined ? null : await firstSince(db, new Date(since.getTime() - SOON)),
        end: until === undefined ? null : await firstSince(db, new Date(until.getTime() + slack)),
    };
}

/** The number from which on deliveries are not older; null where there are none. */
export async function firstSince(db: Executor, time: Date): Promise<string | null> {
    const { rows } = await db.query<{ first: string | null }>('select scanwire.first_delivery_since($1) as first', [time]);
    return rows[0]?.first ?? null;
}

/** This order leaves the planner only the index of these deliveries: it knows how many have no kind, but not that all of them are old. */
const LAST_OLD = 'select d.seq from scanwire.deliveries d where d.kind is null order by d.kind desc, d.seq desc limit 1';

/**
 * The number of the last delivery without the columns that the filter asks for, since it is older than these columns; null where there is none,
 * and where the filter asks for none of them. Deliveries that were being accepted when the columns were added count as old.
 */
export async function lastOldOf(db: Executor, { kind, state, since, until }: DeliveryFilter): Promise<string | null> {
    if (kind === undefined && since === undefined && until === undefined && !isFailed(state)) {
        return null;
    }
    return (await db.query<{ seq: string }>(LAST_OLD)).rows[0]?.seq ?? null;
}

function isFailed(state: DeliveryState | undefined): boolean {
    return state !== undefined && STAGES[state] === 'failed';
}

/** What is listed of deliveries `d`, in the order of their numbers. */
export interface ListedRows {
    readonly columns: string;
    readonly from: string;
    readonly order: string;
    /** Further conditions. */
    readonly conditions: readonly string[];
}

const DELIVERIES: ListedRows = { columns: 'd.*', from: 'scanwire.deliveries d', order: 'd.seq desc', conditions: [] };

/** Adds a value to the parameters of a statement, and returns its name there, such as `$2`. */
export type Parameter = (value: unknown) => string;

interface Choice {
    /** Whether the newest are wanted, as in a list. A count needs no order. */
    readonly newest: boolean;
    /** As {@link lastOldOf} says. */
    readonly lastOld: string | null;
    /** Conditions of which one must hold, each with an index of its own. When absent, all deliveries are looked through. */
    readonly either?: readonly string[];
    readonly listed?: (parameter: Parameter) => ListedRows;
}

/** `$1` of `values` is `limit`. */
export function chosenBy(
    filter: DeliveryFilter,
    span: Span,
    limit: number,
    { newest, lastOld, either = ['true'], listed = () => DELIVERIES }: Choice,
): { readonly source: string; readonly values: unknown[] } {
    const values: unknown[] = [limit];
    const parameter: Parameter = (value) => `$${values.push(value)}`;
    const rows = listed(parameter);
    const conditions = [...conditionsOf(filter, span, parameter), ...rows.conditions];
    const { exporterIds } = filter;
    const source = exporterIds === undefined ? ofAll(rows) : ofEach(rows, parameter(exporterIds.filter(isUuid)), newest);
    const sources = copiedConditionsOf(filter, lastOld, parameter).flatMap((ofCopied) =>
        either.map((one) => `(${source([...conditions, ...ofCopied, one].join(' and '))})`),
    );
    return { source: sources.join(' union all '), values };
}

/** Where a condition holds. */
type Source = (condition: string) => string;

function ofAll({ columns, from, order }: ListedRows): Source {
    return (condition) => `select ${columns} from ${from} where ${condition} order by ${order} limit $1`;
}

/**
 * Reads of each exporter by itself as many as are asked for, so that for an exporter with few deliveries not those of all others are read. This
 * order leaves the planner only indexes of exporters, whatever it expects of their sizes. Of more exporters than rows asked for, only as many
 * as there are rows can have any: those whose newest delivery is the most recent. No row that is listed is older than the oldest of these newest
 * deliveries.
 */
function ofEach({ columns: all, from, order }: ListedRows, exporterIds: string, newest: boolean): Source {
    const each = `unnest(${exporterIds}::uuid[]) x (id)`;
    const of = (columns: string, condition: string, limit: string): string => `
        select ${columns} from ${from}
        where d.exporter_id >= x.id and d.exporter_id <= x.id and ${condition}
        order by d.exporter_id desc, ${order} limit ${limit}`;
    return (condition) =>
        newest
            ? `
        with firsts as materialized (
            select x.id, f.seq from ${each} cross join lateral (${of('d.seq', condition, '1')}) f order by f.seq desc limit $1
        )
        select o.* from firsts x cross join lateral (${of(all, `${condition} and d.seq >= (select case when count(*) = $1 then min(f.seq) else 0 end from firsts f)`, '$1')}) o`
            : `select o.* from ${each} cross join lateral (${of(all, condition, '$1')}) o`;
}

/** Conditions on the columns that deliveries have for lists. Old deliveries lack these columns: for them, on what the columns are copied from. */
function copiedConditionsOf(
    { kind, state, since, until }: DeliveryFilter,
    lastOld: string | null,
    parameter: Parameter,
): readonly (readonly string[])[] {
    const asked = [
        ...(kind === undefined ? [] : [['kind', '=', parameter(kind)]]),
        ...(since === undefined ? [] : [['accepted_at', '>=', parameter(since)]]),
        ...(until === undefined ? [] : [['accepted_at', '<', parameter(until)]]),
    ] as const;
    const failedAs = isFailed(state) ? parameter(state) : null;
    if (asked.length === 0 && failedAs === null) {
        return [[]];
    }
    const current = [
        'd.kind is not null',
        ...asked.map(([column, operator, value]) => `d.${column} ${operator} ${value}`),
        ...(failedAs === null ? [] : [`d.ended_as = ${failedAs}`]),
    ];
    if (lastOld === null) {
        return [current];
    }
    const ofEvent = asked.map(([column, operator, value]) => `v.${column === 'kind' ? 'kind' : 'created_at'} ${operator} ${value}`);
    return [
        current,
        [
            'd.kind is null',
            `d.seq <= ${parameter(lastOld)}`,
            ...(asked.length === 0 ? [] : [`exists (select from scanwire.events v where v.id = d.event_id and ${ofEvent.join(' and ')})`]),
            ...(failedAs === null ? [] : [`d.state = ${failedAs}`]),
        ],
    ];
}

function conditionsOf(filter: DeliveryFilter, { first, end }: Span, parameter: Parameter): readonly string[] {
    const { state, exporterId, eventId, outcome, after } = filter;
    return [
        'true',
        // spelled as in the partial indexes, since the planner does not know the parameters
        ...(state === undefined ? [] : [`d.stage = '${STAGES[state]}'`]),
        ...(state === undefined || isFailed(state) ? [] : [`d.state = ${parameter(state)}`]),
        ...(outcome === undefined ? [] : [`d.last_code = ${parameter(outcome)}`]),
        ...(outcome === undefined || outcome === 'delivered' ? [] : [`d.last_code <> 'delivered'`]),
        ...(exporterId === undefined ? [] : [`d.exporter_id = ${parameter(uuidOrNull(exporterId))}`]),
        ...(eventId === undefined ? [] : [`d.event_id = ${parameter(uuidOrNull(eventId))}`]),
        ...(first === null ? [] : [`d.seq >= ${parameter(first)}`]),
        ...(end === null ? [] : [`d.seq < ${parameter(end)}`]),
        ...(after === undefined ? [] : [`d.seq < (select x.seq from scanwire.deliveries x where x.id = ${parameter(uuidOrNull(after))})`]),
    ];
}
