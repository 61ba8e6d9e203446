import type { Executor } from '../../../lib/transaction.ts';
import {
    type AttemptFilter,
    type AttemptStore,
    attemptId,
    attemptOf,
    type ListedAttempt,
} from '../../../lib/webhooks/deliveries/attempt-lists.ts';
import { isUuid, type Row, uuidOrNull, withDates } from '../database.ts';
import { CODE, IN_VAIN } from '../migrations/0079-attempts-listed.ts';
import { chosenBy, firstSince, type ListedRows, lastOldOf, type Parameter, SOON, type Span, withinSpans } from './delivery-lists.ts';

/** Attempts in the order of their deliveries, which have what they are asked for by: nothing on the way of a delivery pays for these lists. */
export function attemptLists(db: Executor): AttemptStore {
    return {
        async list({ limit, ...filter }) {
            const listed: ListedAttempt[] = [];
            await eachPart(db, filter, limit, true, async (source, values) => {
                const { rows } = await db.query<Row<Omit<ListedAttempt, 'id'>>>(
                    `select
                        l.number, l.started_at as "startedAt", l.finished_at as "finishedAt", l.outcome, l.late,
                        l.delivery_id as "deliveryId", l.event_id as "eventId", v.kind, l.exporter_id as "exporterId"
                    from (select l.* from (${source}) l order by l.seq desc, l.number desc limit $1) l
                    join scanwire.events v on v.id = l.event_id
                    order by l.seq desc, l.number desc`,
                    values,
                );
                listed.push(...rows.map(attemptFromRow));
                return rows.length;
            });
            return listed;
        },

        async count(filter, max) {
            if (Object.keys(filter).every((field) => OWN.has(field)) && (isInVain(filter.outcome) || !isTimed(filter))) {
                return await countOwn(db, filter, max);
            }
            let counted = 0;
            await eachPart(db, filter, max, false, async (source, values) => {
                const sql = `select count(*)::integer as count from (select from (${source}) l limit $1) l`;
                const count = (await db.query<{ count: number }>(sql, values)).rows[0]?.count ?? 0;
                counted += count;
                return count;
            });
            return counted;
        },
    };
}

/** What attempts have themselves, without their deliveries. */
const OWN: ReadonlySet<string> = new Set(['since', 'until', 'outcome']);

async function countOwn(db: Executor, asked: AttemptFilter, max: number): Promise<number> {
    const values: unknown[] = [max];
    const conditions = ['true', ...ownConditionsOf(asked, (value) => `$${values.push(value)}`)].join(' and ');
    const sql = `select count(*)::integer as count from (select from scanwire.attempts a where ${conditions} limit $1) a`;
    return (await db.query<{ count: number }>(sql, values)).rows[0]?.count ?? 0;
}

function attemptFromRow(row: Row<Omit<ListedAttempt, 'id'>>): ListedAttempt {
    const attempt = withDates(row, ['startedAt', 'finishedAt']);
    return { id: attemptId(attempt.deliveryId, attempt.number), ...attempt };
}

/** @returns How many there are of them. */
type Read = (source: string, values: unknown[]) => Promise<number>;

/** Reads what is asked for, up to `limit`, until it is found. */
async function eachPart(db: Executor, asked: AttemptFilter, limit: number, newest: boolean, read: Read): Promise<void> {
    const { deliveryId: _, since, until, outcome: __, after, ...filter } = asked;
    const lastOld = await lastOldOf(db, filter);
    if (await areFew(db, asked)) {
        const { exporterIds: ___, ...others } = filter;
        const { source, values } = chosenBy(others, NO_BOUNDS, limit, {
            newest,
            lastOld,
            listed: (parameter) => gathered(asked, parameter),
        });
        await read(source, values);
        return;
    }
    const bounds = {
        ...(filter.eventId !== undefined && { eventId: filter.eventId }),
        ...(until !== undefined && { until }),
        ...(after !== undefined && { after }),
    };
    let left = limit;
    for (const ofPart of await partsOf(db, filter, since)) {
        const listed = (parameter: Parameter): ListedRows => ({
            ...WALKED,
            conditions: [
                ...ofPart(parameter),
                ...ownConditionsOf(asked, parameter),
                ...placeConditionsOf(asked, parameter),
                // Most have been delivered at once, and need not be looked into.
                ...(isInVain(asked.outcome) ? [`(d.last_code is distinct from 'delivered' or d.attempts > 1)`] : []),
            ],
        });
        const found = await withinSpans(db, bounds, async (span) => {
            const { source, values } = chosenBy(filter, span, left, { newest, lastOld, listed });
            const count = await read(source, values);
            return count === 0 ? [] : [count];
        });
        left -= found[0] ?? 0;
        if (left === 0) {
            return;
        }
    }
}

const NO_BOUNDS: Span = { first: null, end: null };

/** So many attempts are put in order faster than deliveries are walked through for them, or those of each of several exporters. */
const FEW = { ofAll: 2_000, ofSeveral: 20_000 } as const;

function fewOf({ exporterIds }: AttemptFilter): number {
    return exporterIds === undefined ? FEW.ofAll : FEW.ofSeveral;
}

/** Whether few attempts have come to the outcome that is asked for: then all of them are read, else deliveries in their order. */
async function areFew(db: Executor, asked: AttemptFilter): Promise<boolean> {
    const ofFewDeliveries = asked.deliveryId !== undefined || asked.eventId !== undefined;
    return isInVain(asked.outcome) && !ofFewDeliveries && (await countOwn(db, asked, fewOf(asked) + 1)) <= fewOf(asked);
}

function isTimed({ since, until }: AttemptFilter): boolean {
    return since !== undefined || until !== undefined;
}

function isInVain(outcome: AttemptFilter['outcome']): boolean {
    return outcome !== undefined && outcome !== 'delivered';
}

type Conditions = (parameter: Parameter) => readonly string[];

/**
 * An attempt may be much later than its delivery was accepted. Those of the deliveries that were accepted since are looked for first, which are listed
 * first, then those of older ones that had not ended by then.
 */
async function partsOf(db: Executor, { eventId }: AttemptFilter, since: Date | undefined): Promise<readonly Conditions[]> {
    if (since === undefined || eventId !== undefined) {
        return [() => []];
    }
    const first = await firstSince(db, new Date(since.getTime() - SOON));
    const unended: Conditions = (parameter) => [`(d.finished_at is null or d.finished_at >= ${parameter(since)})`];
    return first === null
        ? [unended]
        : [(parameter) => [`d.seq >= ${parameter(first)}`], (parameter) => [`d.seq < ${parameter(first)}`, ...unended(parameter)]];
}

const LISTED = {
    columns: 'd.seq, d.id as delivery_id, d.event_id, d.exporter_id, a.number, a.started_at, a.finished_at, a.outcome, a.late',
    order: 'd.seq desc, a.number desc',
} as const;

/** Each delivery with its attempts: sorted by themselves, they are joined to no other way than by the key of each. */
const WALKED: Omit<ListedRows, 'conditions'> = {
    ...LISTED,
    from: `scanwire.deliveries d
        cross join lateral (select a.* from scanwire.attempts a where a.delivery_id = d.id order by a.number desc) a`,
};

/** Attempts first, each with its delivery. */
function gathered(asked: AttemptFilter, parameter: Parameter): ListedRows {
    const own = ownConditionsOf(asked, parameter).join(' and ');
    const { exporterIds } = asked;
    return {
        ...LISTED,
        from: `(select a.* from scanwire.attempts a where ${own} order by a.started_at desc limit ${fewOf(asked)}) a
            cross join lateral (select d.* from scanwire.deliveries d where d.id = a.delivery_id offset 0) d`,
        conditions: [
            ...placeConditionsOf(asked, parameter),
            ...(exporterIds === undefined ? [] : [`d.exporter_id = any (${parameter(exporterIds.filter(isUuid))}::uuid[])`]),
        ],
    };
}

/** On attempts alone. */
function ownConditionsOf({ since, until, outcome }: AttemptFilter, parameter: Parameter): readonly string[] {
    return [
        ...(since === undefined ? [] : [`a.started_at >= ${parameter(since)}`]),
        ...(until === undefined ? [] : [`a.started_at < ${parameter(until)}`]),
        ...(outcome === undefined ? [] : [`${CODE} = ${parameter(outcome)}`]),
        ...(isInVain(outcome) ? [IN_VAIN] : []),
    ];
}

function placeConditionsOf({ deliveryId, after }: AttemptFilter, parameter: Parameter): readonly string[] {
    return [
        ...(deliveryId === undefined ? [] : [`d.id = ${parameter(uuidOrNull(deliveryId))}`]),
        ...(after === undefined ? [] : behind(after, parameter)),
    ];
}

function behind(after: string, parameter: Parameter): readonly string[] {
    const last = attemptOf(after);
    if (last === null) {
        return ['false'];
    }
    const id = parameter(uuidOrNull(last.deliveryId));
    return [
        `d.seq <= (select x.seq from scanwire.deliveries x where x.id = ${id})`,
        `(d.id <> ${id} or a.number < ${parameter(last.number)}::integer)`,
    ];
}
