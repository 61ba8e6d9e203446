import type { Executor } from '../../../lib/transaction.ts';
import type {
    Attempt,
    Claim,
    ClaimRequest,
    Delivery,
    DeliveryStore,
    Dispatched,
    DispatchOptions,
    DispatchResult,
    RecordedOutcome,
} from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { RESERVATION_TIMES } from '../../../lib/webhooks/dispatching/reservations.ts';
import type { Session } from '../../../lib/webhooks/dispatching/session.ts';
import { SHARES } from '../../../lib/webhooks/dispatching/shares.ts';
import type { DeliveryContent, EventSummary } from '../../../lib/webhooks/events/new-event.ts';
import type { TraceStore } from '../../../lib/webhooks/observing/trace-store.ts';
import { type BreakerRules, FAULTS, STOPPED_FAILING } from '../../../lib/webhooks/outcomes/breaker.ts';
import { INTERRUPTIONS, interrupted } from '../../../lib/webhooks/outcomes/outcome.ts';
import type { ResponseBody, ResponseStore } from '../../../lib/webhooks/outcomes/response-bodies.ts';
import { storeRefusals } from '../../../lib/webhooks/store-refusals.ts';
import { isUuid, type Row, type Time, uuidOrNull, withDates } from '../database.ts';
import { accept, acceptJoined, dispatchedFromRow } from './acceptance.ts';
import { countDeliveries, countSlices, deliveryFromRow, listDeliveries } from './delivery-lists.ts';
import {
    ATTEMPTS,
    CLAIM,
    type ClaimRow,
    CONTENT,
    DISCARD,
    DISPATCH,
    DISPATCH_AT_RATE,
    type DispatchRow,
    ERASE,
    EVENT,
    GET,
    KEEP_ALIVE,
    KEEP_RESPONSES,
    KEEP_TRACES,
    NOW,
    RECORD_DELIVERED,
    RECORD_OUTCOMES,
    RECORD_SINGLE_DELIVERED,
    REPLAY,
    RESPONSES,
    SWEEP,
    type SweptRow,
    TRACES,
} from './delivery-statements.ts';
import { exporterFromRow } from './exporters.ts';
import type { Notifications } from './notifications.ts';
import { replayStore } from './replays.ts';
import { retentionStore } from './retention.ts';

/**
 * Events, deliveries and attempts in the tables of migration `0002-webhooks`. `db` rejects with `UNAVAILABLE` by itself.
 *
 * @param notifications How commits are heard; they are not when absent.
 */
export function deliveries(db: Executor, notifications?: Notifications): DeliveryStore {
    return {
        transactions: true,
        idempotent: true,
        holds: true,
        ordered: true,
        rated: true,
        filtersByExporters: true,
        replays: replayStore(db),
        retention: retentionStore(db),
        traces: traceStore(db),
        responses: responseStore(db),
        ...(notifications?.listen && { listen: notifications.listen }),
        accept: (newEvents, { tx, ...options } = {}) =>
            tx === undefined ? accept(db, newEvents, options, true) : acceptJoined(tx, newEvents, options, notifications),

        async now() {
            const { rows } = await db.query<{ now: Time }>(NOW);
            return new Date(rows[0]?.now as Time);
        },

        dispatch: (options) => dispatch(db, options),

        async sweep({ requeueAfter, limit, endedOnly = false }) {
            const outcome = JSON.stringify(interrupted(0, INTERRUPTIONS.expired));
            const parameters = [requeueAfter, limit, FAULTS.poisonedAfter, outcome, endedOnly, RESERVATION_TIMES.reportedAfter];
            const { rows } = await db.query<SweptRow>(SWEEP, parameters);
            return {
                lost: rows.filter((row) => !row.poisoned).map(({ poisoned, ...row }) => ({ ...row, reservation: null })),
                poisoned: rows.filter((row) => row.poisoned).map(({ deliveryId }) => deliveryId),
            };
        },

        claim: (requests, session, maxBytes) => claim(db, requests, session, maxBytes),
        recordOutcomes: (outcomes, rules) => recordOutcomes(db, outcomes, rules),

        async keepAlive({ id, process, slots, generation = null, opensUrls = false }, duration, begun = { upTo: null, attempts: [] }) {
            const named = begun.attempts.map(({ deliveryId, token, claimedAt, duration }) => {
                return { id: deliveryId, token, claimed_at: claimedAt, duration };
            });
            const parameters = [id, process, JSON.stringify(slots), duration, generation, begun.upTo, JSON.stringify(named), opensUrls];
            const { rows } = await db.query<{ now: Time }>(KEEP_ALIVE, parameters);
            return new Date(rows[0]?.now as Time);
        },

        async sessions() {
            const { rows } = await db.query<Required<Session>>(
                `select id, process, slots, opens_urls as "opensUrls" from scanwire.worker_sessions where alive_until > scanwire.now()
                union all
                select id, 'of a version without sessions', '{}', false from scanwire.sessionless where until > scanwire.now()`,
            );
            return rows;
        },

        async endSessions(ids) {
            await db.query('delete from scanwire.worker_sessions where id = any ($1::uuid[])', [ids]);
        },

        get: (id) => get(db, id),

        async attempts(deliveryId) {
            const { rows } = await db.query<Row<Attempt>>(ATTEMPTS, [uuidOrNull(deliveryId)]);
            return rows.map((row) => withDates(row, ['startedAt', 'finishedAt']));
        },

        content: (deliveryId) => content(db, deliveryId),
        list: (query) => listDeliveries(db, query),
        count: (filter, max) => countDeliveries(db, filter, max),
        activity: (bounds, options) => countSlices(db, bounds, options),
        replay: (id) => replay(db, id),
        discard: (id) => discard(db, id),

        async event(id) {
            const { rows } = await db.query<Row<EventSummary>>(EVENT, [uuidOrNull(id)]);
            return rows[0] === undefined ? null : withDates(rows[0], ['createdAt', 'erasedAt']);
        },

        async erase(eventId) {
            const outcome = JSON.stringify(interrupted(0, INTERRUPTIONS.erased));
            const { rows } = await db.query<Row<EventSummary & { ended: number }>>(ERASE, [uuidOrNull(eventId), outcome]);
            if (rows[0] === undefined) {
                throw storeRefusals.unknownEvent();
            }
            return withDates(rows[0], ['createdAt', 'erasedAt']);
        },
    };
}

/** Those that were passed by for others of their order keys are not found again, and may have had the places of others: these get them at once. */
async function dispatch(db: Executor, { window, breakerAfter, beginWithin, limit, rate }: DispatchOptions): Promise<DispatchResult> {
    const handedOut: Dispatched[] = [];
    for (;;) {
        const parameters = [window, breakerAfter, limit - handedOut.length, SHARES.defaultSlots, SHARES.slowAfter, beginWithin ?? null];
        const statement = rate === undefined ? DISPATCH : DISPATCH_AT_RATE;
        const [result, ...rows] = (await db.query<DispatchRow>(statement, rate === undefined ? parameters : [...parameters, rate])).rows;
        handedOut.push(...rows.map(dispatchedFromRow));
        if (result?.passedBy !== true || handedOut.length === limit) {
            return { handedOut, waitsFor: result?.waitsFor ?? [] };
        }
    }
}

async function claim(
    db: Executor,
    requests: readonly ClaimRequest[],
    session: string | null,
    maxBytes?: number,
): Promise<readonly (Claim | null)[]> {
    const parameters = requests.map(({ deliveryId, token, duration, reservation = null, keepsReservation = false }, index) => {
        return { index, id: uuidOrNull(deliveryId), token, duration, grant: reservation, holds: keepsReservation };
    });
    const { rows } = await db.query<ClaimRow>(CLAIM, [JSON.stringify(parameters), session, maxBytes ?? null]);
    const claims = new Map(rows.map((row) => [row.index, claimFromRow(row)]));
    return requests.slice(0, rows[0]?.end ?? requests.length).map((_, index) => claims.get(index) ?? null);
}

function claimFromRow({ index: _, end: __, eventId, kind, body, eventCreatedAt, ...row }: ClaimRow): Claim {
    const { deliveryId, token, claimedAt, attempt, attemptSinceReplay, singleAttempt, generation, message, ...exporter } = row;
    const event = { id: eventId, kind, body, createdAt: new Date(eventCreatedAt) };
    const claimed = { deliveryId, token, claimedAt: new Date(claimedAt), attempt, attemptSinceReplay, singleAttempt, generation };
    return { ...claimed, event, message, exporter: exporterFromRow(exporter) };
}

async function recordOutcomes(db: Executor, outcomes: readonly RecordedOutcome[], rules: BreakerRules): Promise<readonly boolean[]> {
    const parameters = outcomes.map(outcomeParameter).filter(({ id, exporter_id }) => isUuid(id) && isUuid(exporter_id));
    if (parameters.length === 0) {
        return outcomes.map(() => false);
    }

    const all = [
        JSON.stringify(parameters),
        JSON.stringify({ ...rules, ...SHARES, stopReason: STOPPED_FAILING }),
        JSON.stringify(interrupted(0, INTERRUPTIONS.delivered)),
    ];
    const { rows } = await db.query<{ index: number }>(...outcomeStatement(parameters, all));
    const held = new Set(rows.map(({ index }) => index));
    return outcomes.map((_, index) => held.has(index));
}

/** The least that will do, with what it takes after what is common to all. */
function outcomeStatement(parameters: readonly ReturnType<typeof outcomeParameter>[], common: readonly string[]): [string, unknown[]] {
    if (!parameters.every(isQuickSuccess)) {
        return [RECORD_OUTCOMES, [...common]];
    }
    if (parameters.some(({ index }) => index > 0)) {
        return [RECORD_DELIVERED, [...common, [...new Set(parameters.map((one) => one.exporter_id))]]];
    }
    const { exporter_id, id, token, claimed_at, code, outcome } = parameters[0] as (typeof parameters)[number];
    return [RECORD_SINGLE_DELIVERED, [...common, exporter_id, id, token, claimed_at, code, outcome]];
}

/** Whether it can only change an exporter that does not fare well yet. */
function isQuickSuccess({ state, health, took, pause, stop_reason }: ReturnType<typeof outcomeParameter>): boolean {
    return state === 'delivered' && health === 'success' && took <= SHARES.quickWithin && pause === null && stop_reason === null;
}

function outcomeParameter(recorded: RecordedOutcome, index: number) {
    const { deliveryId, exporterId, token, begunAt, outcome, next, health, pause, stopReason } = recorded;
    const delay = next.state === 'pending' ? next.delay : null;
    return {
        index,
        id: deliveryId,
        exporter_id: exporterId,
        token,
        claimed_at: begunAt,
        code: outcome.code,
        outcome: JSON.stringify(outcome),
        last_outcome: JSON.stringify({ code: outcome.code, detail: outcome.detail }),
        state: next.state,
        delay: delay === 'fault' ? null : delay,
        fault: delay === 'fault',
        health,
        took: outcome.timings.total,
        pause,
        stop_reason: stopReason,
    };
}

async function get(db: Executor, id: string): Promise<Delivery | null> {
    const { rows } = await db.query<Row<Delivery>>(GET, [uuidOrNull(id)]);
    return rows[0] === undefined ? null : deliveryFromRow(rows[0]);
}

async function content(db: Executor, deliveryId: string): Promise<DeliveryContent | null> {
    type Columns = DeliveryContent['event'] & Omit<DeliveryContent, 'event'>;
    const { rows } = await db.query<Row<Columns>>(CONTENT, [uuidOrNull(deliveryId)]);
    if (rows[0] === undefined) {
        return null;
    }
    const { exporterId, message, ...event } = withDates(rows[0], ['createdAt', 'erasedAt']);
    return { exporterId, event, message };
}

async function replay(db: Executor, id: string): Promise<Delivery> {
    const { rows } = await db.query<Row<Delivery>>(REPLAY, [uuidOrNull(id)]);
    if (rows[0] !== undefined) {
        return deliveryFromRow(rows[0]);
    }
    const delivery = await get(db, id);
    if (delivery === null) {
        throw storeRefusals.unknownDelivery();
    }
    const [event] = (await db.query<Row<EventSummary>>(EVENT, [delivery.eventId])).rows;
    throw event?.erasedAt === null ? storeRefusals.notReplayable() : storeRefusals.eventErased();
}

async function discard(db: Executor, id: string): Promise<Delivery> {
    const { rows } = await db.query<{ discarded: boolean }>(DISCARD, [uuidOrNull(id)]);
    const delivery = await get(db, id);
    if (delivery === null) {
        throw storeRefusals.unknownDelivery();
    }
    if (rows[0]?.discarded !== true) {
        throw storeRefusals.notDiscardable();
    }
    return delivery;
}

/** Traces in the table of the migration `0061-traces`. */
function traceStore(db: Executor): TraceStore {
    return {
        async keep(traces) {
            await db.query(KEEP_TRACES, [traces.map(({ eventId }) => eventId), traces.map(({ traceparent }) => traceparent)]);
        },

        async of(eventIds) {
            const { rows } = await db.query<{ eventId: string; traceparent: string }>(TRACES, [eventIds]);
            return new Map(rows.map(({ eventId, traceparent }) => [eventId, traceparent]));
        },
    };
}

/** Responses in the table of the migration `0072-responses`. */
function responseStore(db: Executor): ResponseStore {
    return {
        async keep(responses) {
            const rows = responses.map(({ deliveryId, token, body }) => ({ delivery_id: deliveryId, token, ...body }));
            await db.query(KEEP_RESPONSES, [JSON.stringify(rows.filter(({ delivery_id }) => isUuid(delivery_id)))]);
        },

        async of(deliveryId) {
            const { rows } = await db.query<ResponseBody & { number: number }>(RESPONSES, [uuidOrNull(deliveryId)]);
            return new Map(rows.map(({ number, ...body }) => [number, body]));
        },
    };
}
