import { isUuid } from '../../../lib/schema-validation.ts';
import type { Executor } from '../../../lib/transaction.ts';
import {
    type AttemptFilter,
    type AttemptStore,
    attemptId,
    attemptOf,
    type ListedAttempt,
} from '../../../lib/webhooks/deliveries/attempt-lists.ts';
import type { DeliveryFilter } from '../../../lib/webhooks/deliveries/deliveries.ts';
import { OUTCOME_CODES } from '../../../lib/webhooks/outcomes/outcome.ts';
import { type Row, uuidOrNull, withDates } from '../database.ts';
import { CODE, ENDED_LATE, IN_VAIN, TO_REPEAT, triedAgain } from '../migrations/0079-attempts-listed.ts';
import { chosenBy, firstSince, type ListedRows, lastOldOf, type Parameter, SOON, type Span, withinSpans } from './delivery-lists.ts';

/** Up to how many candidates are collected and sorted. Where there are more, deliveries are read in their own order instead. */
export interface Few {
    /** Attempts with the outcome that is asked for, when the newest are listed: to sort so many is faster than to walk through deliveries for them. */
    readonly newest: number;
    /** The same when they are counted. */
    readonly counted: number;
    /** Deliveries that were accepted before `since`, the time from which on attempts are asked for. */
    readonly late: number;
}

const FEW: Few = { newest: 2_000, counted: 20_000, late: 20_000 };

/**
 * Lists attempts in the order of their deliveries, whose columns hold most of what a filter asks for. So a delivery that succeeds at once needs
 * no index entry for these lists, and a failed attempt needs one.
 *
 * @param begin Gives what the statements of one operation go to.
 */
export function attemptLists(begin: () => Executor, few: Few = FEW): AttemptStore {
    return {
        async list({ limit, ...asked }) {
            const db = begin();
            const listed: ListedAttempt[] = [];
            async function read(source: string, values: unknown[]): Promise<number> {
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
            }
            await eachPart({ db, asked, newest: true, few, read }, limit);
            return listed;
        },

        async count(asked, max) {
            const db = begin();
            if (Object.keys(asked).every((field) => OWN.has(field)) && (isInVain(asked.outcome) || !isTimed(asked))) {
                return await countOwn(db, asked, max);
            }
            let counted = 0;
            async function read(source: string, values: unknown[]): Promise<number> {
                const sql = `select count(*)::integer as count from (select from (${source}) l limit $1) l`;
                const count = (await db.query<{ count: number }>(sql, values)).rows[0]?.count ?? 0;
                counted += count;
                return count;
            }
            await eachPart({ db, asked, newest: false, few, read }, max);
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

/** One operation. */
interface Reading {
    readonly db: Executor;
    readonly asked: AttemptFilter;
    /** As {@link lastOldOf} says. */
    readonly lastOld: string | null;
    /** Whether the newest are wanted. A count needs no order. */
    readonly newest: boolean;
    readonly few: Few;
    /** @returns How many there are of them. */
    read(source: string, values: unknown[]): Promise<number>;
}

/** Reads what is asked for, up to `limit`, until it is found. */
async function eachPart(reading: Omit<Reading, 'lastOld'>, limit: number): Promise<void> {
    const asked = withSeveralExporters(reading.asked);
    const whole: Reading = { ...reading, asked, lastOld: await lastOldOf(reading.db, ofDelivery(asked)) };
    if (isInVain(asked.outcome) && !isOfFewDeliveries(asked) && (await readFew(whole, inVain(whole), limit)) !== null) {
        return;
    }
    let left = limit;
    for (const part of await partsOf(whole)) {
        left -= (part.candidates && (await readFew(whole, part.candidates, left))) ?? (await readInOrder(whole, part, left));
        if (left === 0) {
            return;
        }
    }
}

/** Deliveries that may have attempts that the filter asks for. While there are few, they are found by their attempts, and then sorted. */
interface Candidates {
    readonly max: number;
    /** Selects the id of each as `delivery_id`, perhaps more than once. */
    ids(parameter: Parameter): string;
    readonly conditions?: Conditions;
}

/** Null where there are too many candidates. */
async function readFew({ db, asked, lastOld, newest, read }: Reading, candidates: Candidates, limit: number): Promise<number | null> {
    const { exporterIds: _, ...filter } = ofDelivery(asked);
    const listed = (parameter: Parameter): ListedRows => gathered(asked, candidates, parameter);
    const { source, values } = chosenBy(filter, NO_BOUNDS, limit, { newest, lastOld, listed });
    const found = await read(source, values);
    // Too many candidates yield no rows either.
    return found > 0 || !(await areMany(db, candidates)) ? found : null;
}

async function areMany(db: Executor, { max, ids }: Candidates): Promise<boolean> {
    const values: unknown[] = [max + 1];
    const source = ids((value) => `$${values.push(value)}`);
    const sql = `select count(*)::integer as count from (select from (${source}) c limit $1) c`;
    return ((await db.query<{ count: number }>(sql, values)).rows[0]?.count ?? 0) > max;
}

async function readInOrder({ db, asked, lastOld, newest, read }: Reading, { conditions, isOld }: Part, limit: number): Promise<number> {
    const { eventId, exporterIds } = asked;
    const bounds = {
        ...(eventId !== undefined && { eventId }),
        ...(asked.until !== undefined && { until: asked.until }),
        ...(asked.after !== undefined && { after: asked.after }),
    };
    const either = exporterIds !== undefined && (isOld || isInVain(asked.outcome)) ? [UNDELIVERED, TRIED_AGAIN] : undefined;
    const listed = (parameter: Parameter): ListedRows => ({
        ...WALKED,
        conditions: [
            ...conditions(parameter),
            ...ownConditionsOf(asked, parameter),
            ...keyConditionsOf(asked, parameter),
            // With these conditions the planner would expect too few rows of a partial index to read it in its order.
            ...(either === undefined ? likelyConditionsOf(asked) : []),
        ],
    });
    const [found = 0] = await withinSpans(db, bounds, async (span) => {
        const choice = { newest, lastOld, listed, ...(either && { either }) };
        const { source, values } = chosenBy(ofDelivery(asked), span, limit, choice);
        const count = await read(source, values);
        return count === 0 ? [] : [count];
    });
    return found;
}

/**
 * The conditions of the partial indexes of exporters. These hold all deliveries that may have a failed attempt, or an attempt long after they
 * were accepted.
 */
const UNDELIVERED = `(d.last_code <> 'delivered' or d.stage = 'failed')`;
const TRIED_AGAIN = `${triedAgain('d.')} and d.stage <> 'failed'`;

/** Excludes deliveries of which their own columns show that no attempt can match: most succeed at once, and few that failed had succeeded before. */
function likelyConditionsOf({ outcome }: AttemptFilter): readonly string[] {
    if (isInVain(outcome)) {
        return [`(d.last_code is distinct from 'delivered' or d.attempts > 1)`];
    }
    return outcome === undefined ? [] : [`(d.last_code is null or d.last_code in ('delivered', 'interrupted') or d.attempts > d.round)`];
}

const NO_BOUNDS: Span = { first: null, end: null };

/** The part of the filter that applies to the deliveries as well. */
function ofDelivery({ deliveryId: _, since: __, until: ___, outcome: ____, after: _____, ...filter }: AttemptFilter): DeliveryFilter {
    return filter;
}

/** Asks for one exporter as for several, so that the planner uses the indexes of exporters only. */
function withSeveralExporters(asked: AttemptFilter): AttemptFilter {
    const { exporterId, exporterIds, ...others } = asked;
    if (exporterId === undefined) {
        return asked;
    }
    const same = exporterIds?.filter((id) => id.toLowerCase() === exporterId.toLowerCase()) ?? [exporterId];
    return { ...others, exporterIds: same };
}

function isOfFewDeliveries({ deliveryId, eventId }: AttemptFilter): boolean {
    return deliveryId !== undefined || eventId !== undefined;
}

function isTimed({ since, until }: AttemptFilter): boolean {
    return since !== undefined || until !== undefined;
}

function isInVain(outcome: AttemptFilter['outcome']): boolean {
    return outcome !== undefined && outcome !== 'delivered';
}

type Conditions = (parameter: Parameter) => readonly string[];

/** Some of the deliveries, whose attempts are listed before those of the next part. */
interface Part {
    readonly conditions: Conditions;
    /** Whether they were accepted before the time from which on attempts are asked for. */
    readonly isOld: boolean;
    readonly candidates?: Candidates;
}

/**
 * An attempt may begin long after its delivery was accepted. The attempts of deliveries accepted since that time are looked for first, since they
 * are listed first; then those of older deliveries that had not ended by that time.
 */
async function partsOf({ db, asked, few }: Reading): Promise<readonly Part[]> {
    const { since } = asked;
    if (since === undefined || asked.eventId !== undefined) {
        return [{ conditions: () => [], isOld: false }];
    }
    // Deliveries with lower numbers were accepted so much earlier that ENDED_LATE covers them.
    const first = await firstSince(db, new Date(since.getTime() - 2 * SOON));
    if (first === null) {
        return [];
    }
    const older: Conditions = (parameter) => [`d.seq < ${parameter(first)}`];
    return [
        { conditions: (parameter) => [`d.seq >= ${parameter(first)}`], isOld: false },
        {
            conditions: (parameter) => [...older(parameter), `(d.finished_at is null or d.finished_at >= ${parameter(since)})`],
            isOld: true,
            ...(!isOfFewDeliveries(asked) && { candidates: { ...unended(since, few.late), conditions: older } }),
        },
    ];
}

/** The deliveries with attempts that had the outcome that is asked for, a failure. */
function inVain({ asked, newest, few }: Reading): Candidates {
    return {
        max: newest ? few.newest : few.counted,
        ids: (parameter) => `select a.delivery_id from scanwire.attempts a where ${ownConditionsOf(asked, parameter).join(' and ')}`,
    };
}

/**
 * Deliveries that were accepted earlier, but had a failed attempt since, have ended since, or were delivered and are to be sent once more. Those
 * delivered ones that have been tried again since are found by their attempt, or by their end.
 */
function unended(since: Date, max: number): Candidates {
    return {
        max,
        ids(parameter) {
            const [time, codes] = [parameter(since), parameter(OUTCOME_CODES.filter(isInVain))];
            const many = max + 1;
            return `
                select a.delivery_id from unnest(${codes}::text[]) k (code)
                cross join lateral (
                    select a.delivery_id from scanwire.attempts a
                    where ${CODE} = k.code and ${IN_VAIN} and a.started_at >= ${time}
                    order by a.started_at limit ${many}
                ) a
                union all
                (select d.id from scanwire.deliveries d where ${ENDED_LATE} and d.finished_at >= ${time} order by d.finished_at limit ${many})
                union all
                (select d.id from scanwire.deliveries d where ${TO_REPEAT} order by d.finished_at limit ${many})`;
        },
    };
}

const LISTED = {
    columns: 'd.seq, d.id as delivery_id, d.event_id, d.exporter_id, a.number, a.started_at, a.finished_at, a.outcome, a.late',
    order: 'd.seq desc, a.number desc',
} as const;

/** Each delivery with its attempts. The subquery sorts them, so that the planner can only look them up by the key of their delivery. */
const WALKED: Omit<ListedRows, 'conditions'> = {
    ...LISTED,
    from: `scanwire.deliveries d
        cross join lateral (select a.* from scanwire.attempts a where a.delivery_id = d.id order by a.number desc) a`,
};

/** Collects the candidates first; selects nothing where there are too many. */
function gathered(asked: AttemptFilter, { max, ids, conditions = () => [] }: Candidates, parameter: Parameter): ListedRows {
    const { exporterIds } = asked;
    return {
        ...LISTED,
        from: `(
                with candidates as materialized (select c.delivery_id from (${ids(parameter)}) c limit ${max + 1})
                select distinct c.delivery_id from candidates c where (select count(*) from candidates) <= ${max}
            ) c
            cross join lateral (select d.* from scanwire.deliveries d where d.id = c.delivery_id offset 0) d
            cross join lateral (select a.* from scanwire.attempts a where a.delivery_id = d.id order by a.number desc) a`,
        conditions: [
            ...conditions(parameter),
            ...ownConditionsOf(asked, parameter),
            ...keyConditionsOf(asked, parameter),
            ...(exporterIds === undefined ? [] : [`d.exporter_id = any (${parameter(exporterIds.filter(isUuid))}::uuid[])`]),
        ],
    };
}

/** On attempts alone. */
function ownConditionsOf({ since, until, outcome }: AttemptFilter, parameter: Parameter): readonly string[] {
    return [
        ...(since === undefined ? [] : [`a.started_at >= ${parameter(since)}`]),
        ...(until === undefined ? [] : [`a.started_at < ${parameter(until)}`]),
        ...(isInVain(outcome) ? [`${CODE} = ${parameter(outcome)}`, IN_VAIN] : []),
        // cheaper than to read the code: outcomes of attempts that were delivered begin alike
        ...(outcome === 'delivered' ? [`not ${IN_VAIN}`] : []),
    ];
}

function keyConditionsOf({ deliveryId, after }: AttemptFilter, parameter: Parameter): readonly string[] {
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
