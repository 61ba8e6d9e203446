import type { Executor } from '../../lib/executor.ts';
import { INTERRUPTIONS, interrupted } from '../../lib/webhooks/outcome.ts';
import {
    type AcceptedEvent,
    type Attempt,
    type Claim,
    type ClaimRequest,
    type Delivery,
    type DeliveryQuery,
    type DeliveryStore,
    type Dispatched,
    type DispatchOptions,
    type NewEvent,
    type RecordedOutcome,
    type SweepOptions,
    storeRefusals,
} from '../../lib/webhooks/store.ts';
import { guarded, isUniqueViolation, isUuid } from './database.ts';
import {
    ACCEPT,
    type AcceptedRow,
    ATTEMPTS,
    CLAIM,
    DISPATCH,
    GET,
    RECORD_LATE_OUTCOMES,
    RECORD_OUTCOMES,
    REPLAY,
    STAGES,
    SWEEP,
} from './delivery-sql.ts';
import { attemptFromRow, type ClaimRow, claimFromRow, DELIVERY_COLUMNS, deliveryFromRow, type Row } from './webhook-rows.ts';

/** Events, deliveries and attempts in the tables of migration `0002-webhooks`. `db` rejects with `UNAVAILABLE` by itself. */
export function deliveries(db: Executor): DeliveryStore {
    return {
        transactions: true,
        accept: (newEvents, options) => accept(options?.tx === undefined ? db : guarded(options.tx), newEvents),
        dispatch: (options) => dispatch(db, options),
        sweep: (options) => sweep(db, options),
        claim: (requests) => claim(db, requests),
        recordOutcomes: (outcomes) => recordOutcomes(db, outcomes),
        get: (id) => get(db, id),
        attempts: (deliveryId) => attempts(db, deliveryId),
        list: (query) => listDeliveries(db, query),
        replay: (id, at) => replay(db, id, at),
    };
}

async function accept(db: Executor, newEvents: readonly NewEvent[]): Promise<readonly AcceptedEvent[]> {
    if (newEvents.length === 0) {
        return [];
    }
    if (newEvents.some(({ recipients }) => 'exporterId' in recipients && !isUuid(recipients.exporterId))) {
        throw storeRefusals.unknownExporter();
    }

    const rows = await queryAccept(db, JSON.stringify(newEvents.map(eventParameter)));
    if (rows[0]?.missing === true) {
        throw storeRefusals.unknownExporter();
    }
    if (rows[0]?.duplicate === true) {
        throw storeRefusals.eventExists();
    }
    return rows.map(({ eventId, deliveries }) => ({ eventId, deliveries }));
}

function eventParameter({ event, recipients }: NewEvent, index: number): object {
    const { id, kind, body, createdAt } = event;
    const types = 'types' in recipients ? recipients.types : null;
    const exporterId = 'exporterId' in recipients ? recipients.exporterId : null;
    return { index, id, kind, body, created_at: createdAt, types, exporter_id: exporterId };
}

/** The statement looks for known ids itself; only one that is accepted in the same moment runs into the unique index. */
async function queryAccept(db: Executor, newEvents: string): Promise<readonly AcceptedRow[]> {
    try {
        const { rows } = await db.query<AcceptedRow>(ACCEPT, [newEvents]);
        return rows;
    } catch (error) {
        throw isUniqueViolation(error) ? storeRefusals.eventExists(error) : error;
    }
}

async function dispatch(db: Executor, { now, window, breakerAfter, limit }: DispatchOptions): Promise<readonly Dispatched[]> {
    const { rows } = await db.query<Dispatched>(DISPATCH, [now, window, breakerAfter, limit]);
    return rows;
}

async function sweep(db: Executor, { now, queuedBefore, limit }: SweepOptions): Promise<readonly Dispatched[]> {
    const outcome = JSON.stringify(interrupted(0, INTERRUPTIONS.expired));
    const { rows } = await db.query<Dispatched>(SWEEP, [now, queuedBefore, limit, outcome]);
    return rows;
}

async function claim(db: Executor, requests: readonly ClaimRequest[]): Promise<readonly (Claim | null)[]> {
    const parameters = requests
        .map(({ deliveryId, token, now, expiresAt }, index) => ({ index, id: deliveryId, token, at: now, expires_at: expiresAt }))
        .filter(({ id }) => isUuid(id));
    const claims: (Claim | null)[] = requests.map(() => null);
    if (parameters.length === 0) {
        return claims;
    }

    const { rows } = await db.query<ClaimRow>(CLAIM, [JSON.stringify(parameters)]);
    for (const row of rows) {
        claims[row.index] = claimFromRow(row);
    }
    return claims;
}

async function recordOutcomes(db: Executor, outcomes: readonly RecordedOutcome[]): Promise<readonly boolean[]> {
    const parameters = outcomes.map(outcomeParameter).filter(({ id, exporter_id }) => isUuid(id) && isUuid(exporter_id));
    if (parameters.length === 0) {
        return outcomes.map(() => false);
    }

    const { rows } = await db.query<{ index: number }>(RECORD_OUTCOMES, [JSON.stringify(parameters)]);
    const held = new Set(rows.map(({ index }) => index));
    const late = parameters.filter(({ index }) => !held.has(index));
    if (late.length > 0) {
        await db.query(RECORD_LATE_OUTCOMES, [JSON.stringify(late)]);
    }
    return outcomes.map((_, index) => held.has(index));
}

function outcomeParameter(recorded: RecordedOutcome, index: number) {
    const { deliveryId, exporterId, token, finishedAt, outcome, next, health, probeAt, stopReason } = recorded;
    return {
        index,
        id: deliveryId,
        exporter_id: exporterId,
        token,
        finished_at: finishedAt,
        code: outcome.code,
        outcome: JSON.stringify(outcome),
        state: next.state,
        due_at: next.state === 'pending' ? next.dueAt : null,
        health,
        probe_at: probeAt,
        stop_reason: stopReason,
    };
}

async function get(db: Executor, id: string): Promise<Delivery | null> {
    if (!isUuid(id)) {
        return null;
    }

    const { rows } = await db.query<Row<Delivery>>(GET, [id]);
    return rows[0] === undefined ? null : deliveryFromRow(rows[0]);
}

async function attempts(db: Executor, deliveryId: string): Promise<readonly Attempt[]> {
    const { rows } = isUuid(deliveryId) ? await db.query<Row<Attempt>>(ATTEMPTS, [deliveryId]) : { rows: [] };
    return rows.map(attemptFromRow);
}

async function replay(db: Executor, id: string, at: Date): Promise<Delivery> {
    const { rows } = isUuid(id) ? await db.query<Row<Delivery>>(REPLAY, [id, at]) : { rows: [] };
    if (rows[0] !== undefined) {
        return deliveryFromRow(rows[0]);
    }
    throw (await get(db, id)) === null ? storeRefusals.unknownDelivery() : storeRefusals.notReplayable();
}

/** As `DeliveryStore.list` says. An id that is no UUID names nothing, so nothing is found. */
async function listDeliveries(db: Executor, { state, exporterId, after, limit }: DeliveryQuery): Promise<readonly Delivery[]> {
    if (![exporterId, after].every((id) => id === undefined || isUuid(id))) {
        return [];
    }

    const values: unknown[] = [limit];
    const parameter = (value: unknown): string => `$${values.push(value)}`;
    const conditions = [
        ...(state === undefined ? [] : [`d.stage = '${STAGES[state]}'`, `d.state = ${parameter(state)}`]),
        ...(exporterId === undefined ? [] : [`d.exporter_id = ${parameter(exporterId)}`]),
        ...(after === undefined ? [] : [`d.seq < (select x.seq from scanwire.deliveries x where x.id = ${parameter(after)})`]),
    ];
    const { rows } = await db.query<Row<Delivery>>(
        `select ${DELIVERY_COLUMNS}
        from (select * from scanwire.deliveries d ${where(conditions)} order by d.seq desc limit $1) d
        join scanwire.events v on v.id = d.event_id
        left join scanwire.exporters e on e.id = d.exporter_id
        order by d.seq desc`,
        values,
    );
    return rows.map(deliveryFromRow);
}

function where(conditions: readonly string[]): string {
    return conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`;
}
