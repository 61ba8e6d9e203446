import type { Executor } from '../../../lib/transaction.ts';
import {
    type AttemptFilter,
    type AttemptStore,
    attemptId,
    attemptOf,
    type ListedAttempt,
} from '../../../lib/webhooks/deliveries/attempt-lists.ts';
import { type Row, uuidOrNull, withDates } from '../database.ts';
import { chosenBy, firstSince, type ListedRows, lastOldOf, type Parameter, SOON, withinSpans } from './delivery-lists.ts';

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
    const bounds = {
        ...(filter.eventId !== undefined && { eventId: filter.eventId }),
        ...(until !== undefined && { until }),
        ...(after !== undefined && { after }),
    };
    let left = limit;
    for (const ofPart of await partsOf(db, filter, since)) {
        const rows = rowsOf((parameter) => [...ofPart(parameter), ...conditionsOf(asked, parameter)]);
        const found = await withinSpans(db, bounds, async (span) => {
            const { source, values } = chosenBy(filter, span, left, { newest, lastOld, rows });
            const count = await read(source, values);
            return count === 0 ? [] : [count];
        });
        left -= found[0] ?? 0;
        if (left === 0) {
            return;
        }
    }
}

type Conditions = NonNullable<ListedRows['conditions']>;

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

function rowsOf(conditions: Conditions): ListedRows {
    return {
        columns: 'd.seq, d.id as delivery_id, d.event_id, d.exporter_id, a.number, a.started_at, a.finished_at, a.outcome, a.late',
        // In its own order, which no join has: by the key of each delivery.
        from: `scanwire.deliveries d
            cross join lateral (select a.* from scanwire.attempts a where a.delivery_id = d.id order by a.number desc) a`,
        order: 'd.seq desc, a.number desc',
        conditions,
    };
}

function conditionsOf({ deliveryId, since, until, outcome, after }: AttemptFilter, parameter: Parameter): readonly string[] {
    return [
        ...(deliveryId === undefined ? [] : [`d.id = ${parameter(uuidOrNull(deliveryId))}`]),
        ...(since === undefined ? [] : [`a.started_at >= ${parameter(since)}`]),
        ...(until === undefined ? [] : [`a.started_at < ${parameter(until)}`]),
        ...(outcome === undefined ? [] : [`a.outcome ->> 'code' = ${parameter(outcome)}`]),
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
