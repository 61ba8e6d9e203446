import { ScanwireError } from '../../lib/errors.ts';
import type { Executor } from '../../lib/executor.ts';
import { INTERRUPTIONS, interrupted } from '../../lib/webhooks/outcome.ts';
import type {
    Acceptance,
    Accepted,
    Claim,
    ClaimRequest,
    Delivery,
    DeliveryQuery,
    DeliveryStore,
    Dispatched,
    DispatchOptions,
    Settlement,
    SweepOptions,
    Swept,
} from '../../lib/webhooks/store.ts';
import { guarded, isUniqueViolation, isUuid } from './database.ts';
import { ACCEPT, type AcceptedRow, ATTEMPTS, CLAIM, DISPATCH, GET, REPLAY, SETTLE, SETTLE_LATE, STAGES, SWEEP } from './delivery-sql.ts';
import {
    type AttemptRow,
    attemptFromRow,
    type ClaimRow,
    claimFromRow,
    DELIVERY_COLUMNS,
    type DeliveryRow,
    deliveryFromRow,
} from './webhook-rows.ts';

/** Events, deliveries and attempts in the tables of migration `0002-webhooks`. `db` answers `UNAVAILABLE` by itself. */
export function deliveries(db: Executor): DeliveryStore {
    return {
        transactions: true,

        async accept(acceptances, options) {
            return await accept(options?.tx === undefined ? db : guarded(options.tx), acceptances);
        },

        async dispatch(options) {
            return await dispatch(db, options);
        },

        async sweep(options) {
            return await sweep(db, options);
        },

        async claim(requests) {
            return await claim(db, requests);
        },

        async settle(settlements) {
            return await settle(db, settlements);
        },

        async get(id) {
            return isUuid(id) ? await get(db, id) : null;
        },

        async attempts(deliveryId) {
            const { rows } = isUuid(deliveryId) ? await db.query<AttemptRow>(ATTEMPTS, [deliveryId]) : { rows: [] };
            return rows.map(attemptFromRow);
        },

        async list(query) {
            return await listDeliveries(db, query);
        },

        async replay(id, at) {
            return await replay(db, id, at);
        },
    };
}

async function accept(db: Executor, acceptances: readonly Acceptance[]): Promise<readonly Accepted[]> {
    if (acceptances.length === 0) {
        return [];
    }
    if (acceptances.some(({ addressees }) => 'exporterId' in addressees && !isUuid(addressees.exporterId))) {
        throw unknownExporter();
    }

    const rows = await queryUnlessTaken(db, JSON.stringify(acceptances.map(acceptanceParameter)));
    if (rows[0]?.missing === true) {
        throw unknownExporter();
    }
    if (rows[0]?.taken === true) {
        throw takenEvent();
    }
    return rows.map((row) => ({ eventId: row.event_id, deliveries: row.deliveries }));
}

function acceptanceParameter({ event, addressees }: Acceptance, place: number): object {
    const { id, kind, body, createdAt } = event;
    const types = 'types' in addressees ? addressees.types : null;
    const exporterId = 'exporterId' in addressees ? addressees.exporterId : null;
    return { place, id, kind, body, created_at: createdAt, types, exporter_id: exporterId };
}

/** The statement looks for taken ids itself; only one that is taken in the same moment runs into the unique index. */
async function queryUnlessTaken(db: Executor, given: string): Promise<readonly AcceptedRow[]> {
    try {
        const { rows } = await db.query<AcceptedRow>(ACCEPT, [given]);
        return rows;
    } catch (error) {
        throw isUniqueViolation(error) ? takenEvent(error) : error;
    }
}

function unknownExporter(): ScanwireError {
    return new ScanwireError('NOT_FOUND', 'Unknown exporter');
}

function takenEvent(cause?: unknown): ScanwireError {
    return new ScanwireError('CONFLICT', 'an event with this id was accepted before', { cause });
}

async function dispatch(db: Executor, { now, window, breakerAfter, limit }: DispatchOptions): Promise<readonly Dispatched[]> {
    const { rows } = await db.query<{ delivery_id: string; collector: string; attempt: number }>(DISPATCH, [
        now,
        window,
        breakerAfter,
        limit,
    ]);
    return rows.map(({ delivery_id, collector, attempt }) => ({ deliveryId: delivery_id, collector, attempt }));
}

async function sweep(db: Executor, { now, queuedBefore, limit }: SweepOptions): Promise<Swept> {
    const outcome = JSON.stringify(interrupted(0, INTERRUPTIONS.expired));
    const { rows } = await db.query<Swept>(SWEEP, [now, queuedBefore, limit, outcome]);
    return rows[0] ?? { requeue: [], interrupted: 0, exhausted: 0 };
}

async function claim(db: Executor, requests: readonly ClaimRequest[]): Promise<readonly (Claim | null)[]> {
    const asked = requests
        .map(({ deliveryId, token, now, expiresAt }, place) => ({ place, id: deliveryId, token, at: now, expires_at: expiresAt }))
        .filter(({ id }) => isUuid(id));
    const claims: (Claim | null)[] = requests.map(() => null);
    if (asked.length === 0) {
        return claims;
    }

    const { rows } = await db.query<ClaimRow>(CLAIM, [JSON.stringify(asked)]);
    for (const row of rows) {
        claims[row.place] = claimFromRow(row);
    }
    return claims;
}

async function settle(db: Executor, settlements: readonly Settlement[]): Promise<readonly boolean[]> {
    const told = settlements.map(settlementParameter).filter(({ id, exporter_id }) => isUuid(id) && isUuid(exporter_id));
    if (told.length === 0) {
        return settlements.map(() => false);
    }

    const { rows } = await db.query<{ place: number }>(SETTLE, [JSON.stringify(told)]);
    const held = new Set(rows.map(({ place }) => place));
    const late = told.filter(({ place }) => !held.has(place));
    if (late.length > 0) {
        await db.query(SETTLE_LATE, [JSON.stringify(late)]);
    }
    return settlements.map((_, place) => held.has(place));
}

function settlementParameter(settlement: Settlement, place: number) {
    const { deliveryId, exporterId, token, finishedAt, outcome, next, health, probeAt, stopReason } = settlement;
    return {
        place,
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
    const { rows } = await db.query<DeliveryRow>(GET, [id]);
    return rows[0] === undefined ? null : deliveryFromRow(rows[0]);
}

async function replay(db: Executor, id: string, at: Date): Promise<Delivery> {
    if (!isUuid(id)) {
        throw new ScanwireError('NOT_FOUND', 'Unknown delivery', { field: 'id' });
    }

    const { rows } = await db.query<DeliveryRow>(REPLAY, [id, at]);
    if (rows[0] !== undefined) {
        return deliveryFromRow(rows[0]);
    }
    throw (await get(db, id)) === null
        ? new ScanwireError('NOT_FOUND', 'Unknown delivery', { field: 'id' })
        : new ScanwireError('CONFLICT', 'the delivery is still under way or its exporter was removed');
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
    const { rows } = await db.query<DeliveryRow>(
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
