import type { Executor } from '../../lib/executor.ts';
import { INTERRUPTIONS, interrupted } from '../../lib/webhooks/outcome.ts';
import {
    type Acceptance,
    type Accepted,
    type Attempt,
    type Claim,
    type ClaimRequest,
    type Delivery,
    type DeliveryQuery,
    type DeliveryStore,
    type Dispatched,
    type Settlement,
    storeRefusals,
} from '../../lib/webhooks/store.ts';
import { guarded, isUniqueViolation, isUuid, type Row, uuidOrNull, withDates } from './database.ts';
import {
    ACCEPT,
    type AcceptedRow,
    ATTEMPTS,
    CLAIM,
    type ClaimRow,
    DELIVERY_COLUMNS,
    DISPATCH,
    GET,
    REPLAY,
    SETTLE,
    SETTLE_LATE,
    STAGES,
    SWEEP,
} from './delivery-sql.ts';
import { exporterFromRow } from './exporters.ts';

/** Events, deliveries and attempts in the tables of migration `0002-webhooks`. `db` rejects with `UNAVAILABLE` by itself. */
export function deliveries(db: Executor): DeliveryStore {
    return {
        transactions: true,
        accept: (acceptances, options) => accept(options?.tx === undefined ? db : guarded(options.tx), acceptances),

        async dispatch({ now, window, breakerAfter, limit }) {
            const { rows } = await db.query<Dispatched>(DISPATCH, [now, window, breakerAfter, limit]);
            return rows;
        },

        async sweep({ now, queuedBefore, limit }) {
            const outcome = JSON.stringify(interrupted(0, INTERRUPTIONS.expired));
            const { rows } = await db.query<Dispatched>(SWEEP, [now, queuedBefore, limit, outcome]);
            return rows;
        },

        claim: (requests) => claim(db, requests),
        settle: (settlements) => settle(db, settlements),
        get: (id) => get(db, id),

        async attempts(deliveryId) {
            const { rows } = await db.query<Row<Attempt>>(ATTEMPTS, [uuidOrNull(deliveryId)]);
            return rows.map((row) => withDates(row, ['startedAt', 'finishedAt']));
        },

        list: (query) => list(db, query),
        replay: (id, at) => replay(db, id, at),
    };
}

async function accept(db: Executor, acceptances: readonly Acceptance[]): Promise<readonly Accepted[]> {
    if (acceptances.length === 0) {
        return [];
    }
    if (acceptances.some(({ addressees }) => 'exporterId' in addressees && !isUuid(addressees.exporterId))) {
        throw storeRefusals.unknownExporter();
    }

    const rows = await queryAccept(db, JSON.stringify(acceptances.map(acceptanceParameter)));
    if (rows[0]?.missing === true) {
        throw storeRefusals.unknownExporter();
    }
    if (rows[0]?.duplicate === true) {
        throw storeRefusals.eventExists();
    }
    return rows.map(({ eventId, deliveries }) => ({ eventId, deliveries }));
}

function acceptanceParameter({ event, addressees }: Acceptance, index: number): object {
    const { id, kind, body, createdAt } = event;
    const types = 'types' in addressees ? addressees.types : null;
    const exporterId = 'exporterId' in addressees ? addressees.exporterId : null;
    return { index, id, kind, body, created_at: createdAt, types, exporter_id: exporterId };
}

/** The statement looks for known ids itself; only one that is accepted in the same moment runs into the unique index. */
async function queryAccept(db: Executor, acceptances: string): Promise<readonly AcceptedRow[]> {
    try {
        const { rows } = await db.query<AcceptedRow>(ACCEPT, [acceptances]);
        return rows;
    } catch (error) {
        throw isUniqueViolation(error) ? storeRefusals.eventExists(error) : error;
    }
}

async function claim(db: Executor, requests: readonly ClaimRequest[]): Promise<readonly (Claim | null)[]> {
    const parameters = requests.map(({ deliveryId, token, now, expiresAt }, index) => {
        return { index, id: uuidOrNull(deliveryId), token, at: now, expires_at: expiresAt };
    });
    const { rows } = await db.query<ClaimRow>(CLAIM, [JSON.stringify(parameters)]);
    const claims = new Map(rows.map((row) => [row.index, claimFromRow(row)]));
    return requests.map((_, index) => claims.get(index) ?? null);
}

function claimFromRow({ index: _, eventId, kind, body, eventCreatedAt, ...row }: ClaimRow): Claim {
    const { deliveryId, token, attempt, round, single, ...exporter } = row;
    const event = { id: eventId, kind, body, createdAt: new Date(eventCreatedAt) };
    return { deliveryId, token, attempt, round, single, event, exporter: exporterFromRow(exporter) };
}

async function settle(db: Executor, settlements: readonly Settlement[]): Promise<readonly boolean[]> {
    const parameters = settlements.map(settlementParameter).filter(({ id, exporter_id }) => isUuid(id) && isUuid(exporter_id));
    if (parameters.length === 0) {
        return settlements.map(() => false);
    }

    const { rows } = await db.query<{ index: number }>(SETTLE, [JSON.stringify(parameters)]);
    const held = new Set(rows.map(({ index }) => index));
    const late = parameters.filter(({ index }) => !held.has(index));
    if (late.length > 0) {
        await db.query(SETTLE_LATE, [JSON.stringify(late)]);
    }
    return settlements.map((_, index) => held.has(index));
}

function settlementParameter(settlement: Settlement, index: number) {
    const { deliveryId, exporterId, token, finishedAt, outcome, next, health, probeAt, stopReason } = settlement;
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
    const { rows } = await db.query<Row<Delivery>>(GET, [uuidOrNull(id)]);
    return rows[0] === undefined ? null : deliveryFromRow(rows[0]);
}

async function replay(db: Executor, id: string, at: Date): Promise<Delivery> {
    const { rows } = await db.query<Row<Delivery>>(REPLAY, [uuidOrNull(id), at]);
    if (rows[0] !== undefined) {
        return deliveryFromRow(rows[0]);
    }
    throw (await get(db, id)) === null ? storeRefusals.unknownDelivery() : storeRefusals.notReplayable();
}

async function list(db: Executor, { state, exporterId, after, limit }: DeliveryQuery): Promise<readonly Delivery[]> {
    const values: unknown[] = [limit];
    const parameter = (value: unknown): string => `$${values.push(value)}`;
    const conditions = [
        'true',
        ...(state === undefined ? [] : [`d.stage = '${STAGES[state]}'`, `d.state = ${parameter(state)}`]),
        ...(exporterId === undefined ? [] : [`d.exporter_id = ${parameter(uuidOrNull(exporterId))}`]),
        ...(after === undefined ? [] : [`d.seq < (select x.seq from scanwire.deliveries x where x.id = ${parameter(uuidOrNull(after))})`]),
    ];
    const { rows } = await db.query<Row<Delivery>>(
        `select ${DELIVERY_COLUMNS}
        from (select * from scanwire.deliveries d where ${conditions.join(' and ')} order by d.seq desc limit $1) d
        join scanwire.events v on v.id = d.event_id
        left join scanwire.exporters e on e.id = d.exporter_id
        order by d.seq desc`,
        values,
    );
    return rows.map(deliveryFromRow);
}

function deliveryFromRow(row: Row<Delivery>): Delivery {
    return withDates(row, ['dueAt', 'createdAt', 'finishedAt']);
}
