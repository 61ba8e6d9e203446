import type { Executor } from '../../lib/transaction.ts';
import { type BreakerRules, FAULTS, STOPPED_FAILING } from '../../lib/webhooks/breaker.ts';
import { GRANTS, type HandOutOptions } from '../../lib/webhooks/grants.ts';
import type { NewEvent, Recipients, Subscriber } from '../../lib/webhooks/new-event.ts';
import { INTERRUPTIONS, interrupted } from '../../lib/webhooks/outcome.ts';
import { SHARES } from '../../lib/webhooks/shares.ts';
import type {
    Acceptance,
    Attempt,
    Claim,
    ClaimRequest,
    Delivery,
    DeliveryContent,
    DeliveryStore,
    Dispatched,
    DispatchOptions,
    DispatchResult,
    EventSummary,
    RecordedOutcome,
    Session,
} from '../../lib/webhooks/store.ts';
import { storeRefusals } from '../../lib/webhooks/store-refusals.ts';
import { guarded, isUniqueViolation, isUuid, type Row, sqlState, type Time, uuidOrNull, withDates } from './database.ts';
import { countDeliveries, deliveryFromRow, listDeliveries } from './delivery-lists.ts';
import {
    ACCEPT,
    ACCEPT_CHOSEN,
    ACCEPT_ORDERED,
    type AcceptedRow,
    ATTEMPTS,
    CLAIM,
    type ClaimRow,
    CONTENT,
    DISPATCH,
    type DispatchRow,
    ERASE,
    EVENT,
    GET,
    KEEP_ALIVE,
    NOW,
    RECORD_OUTCOMES,
    REPLAY,
    SWEEP,
    type SweptRow,
} from './delivery-sql.ts';
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
        replays: replayStore(db),
        retention: retentionStore(db),
        ...(notifications?.listen && { listen: notifications.listen }),
        accept: (newEvents, { tx, ...options } = {}) =>
            tx === undefined ? accept(db, newEvents, options) : joined(tx, newEvents, options, notifications),

        async now() {
            const { rows } = await db.query<{ now: Time }>(NOW);
            return new Date(rows[0]?.now as Time);
        },

        dispatch: (options) => dispatch(db, options),

        async sweep({ requeueAfter, limit, endedOnly = false }) {
            const outcome = JSON.stringify(interrupted(0, INTERRUPTIONS.expired));
            const parameters = [requeueAfter, limit, FAULTS.poisonedAfter, outcome, endedOnly, GRANTS.reportedAfter];
            const { rows } = await db.query<SweptRow>(SWEEP, parameters);
            return {
                lost: rows.filter((row) => !row.poisoned).map(({ poisoned, ...row }) => ({ ...row, grant: null })),
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
                'select id, process, opens_urls as "opensUrls" from scanwire.worker_sessions where alive_until > scanwire.now()',
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
        replay: (id) => replay(db, id),

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

/** That a transaction must be run again, its owner has to hear from the database itself: only it can do so. */
async function joined(
    tx: Executor,
    newEvents: readonly NewEvent[],
    { revision }: AcceptOptions,
    notifications?: Notifications,
): Promise<readonly Acceptance[]> {
    const statements = guarded(tx);
    try {
        const accepted = await accept(statements, newEvents, revision === undefined ? {} : { revision });
        if (accepted.some((one) => one.deliveries.length > 0)) {
            await notifications?.notify(statements);
        }
        return accepted;
    } catch (error) {
        const { cause } = error as Error;
        throw sqlState(cause).startsWith('40') ? cause : error;
    }
}

/** Those that were passed by for others of their order keys are not found again, and may have had the places of others: these get them at once. */
async function dispatch(db: Executor, { window, breakerAfter, beginWithin, limit }: DispatchOptions): Promise<DispatchResult> {
    const handedOut: Dispatched[] = [];
    for (;;) {
        const parameters = [window, breakerAfter, limit - handedOut.length, SHARES.defaultSlots, SHARES.slowAfter, beginWithin ?? null];
        const [result, ...rows] = (await db.query<DispatchRow>(DISPATCH, parameters)).rows;
        handedOut.push(...rows.map(dispatchedFromRow));
        if (result?.passedBy !== true || handedOut.length === limit) {
            return { handedOut, more: result?.more === true };
        }
    }
}

interface AcceptOptions {
    readonly handOut?: Required<HandOutOptions>;
    readonly revision?: number;
}

async function accept(db: Executor, newEvents: readonly NewEvent[], { handOut, revision }: AcceptOptions): Promise<readonly Acceptance[]> {
    if (newEvents.length === 0) {
        return [];
    }
    if (newEvents.some(({ recipients }) => 'exporterId' in recipients && !isUuid(recipients.exporterId))) {
        throw storeRefusals.unknownExporter();
    }

    const { beginWithin = null, window = null, breakerAfter = null } = handOut ?? {};
    const events = newEvents.map(eventParameter);
    const parameters = [revision ?? null, beginWithin, window, breakerAfter, SHARES.defaultSlots, SHARES.slowAfter];
    const plain = events.every(({ key, subscribers }) => key === undefined && subscribers.length === 0);
    const statement = events.some(({ order_key }) => order_key !== undefined) ? ACCEPT_ORDERED : plain ? ACCEPT : ACCEPT_CHOSEN;
    const rows = await queryAccept(db, statement, [JSON.stringify(events), ...parameters]);
    if (rows[0]?.outdated === true) {
        throw storeRefusals.subscribersChanged();
    }
    if (rows[0]?.conflicting === true) {
        throw storeRefusals.keyTaken();
    }
    if (rows[0]?.missing === true) {
        throw storeRefusals.unknownExporter();
    }
    if (rows[0]?.duplicate === true) {
        throw storeRefusals.eventExists();
    }
    return rows.map(({ eventId, deliveries }) => ({
        eventId,
        deliveries: deliveries.map(({ id }) => id),
        handedOut: deliveries.filter(({ token }) => token !== null).map(handedOutAtOnce),
    }));
}

function handedOutAtOnce({ id: deliveryId, collector, ...grant }: AcceptedRow['deliveries'][number]): Dispatched {
    return dispatchedFromRow({
        deliveryId,
        collector,
        attempt: 1,
        singleAttempt: false,
        round: 1,
        ...grant,
        generation: grant.generation ?? 0,
        settings: grant.settings ?? 0,
    });
}

function dispatchedFromRow(row: Omit<DispatchRow, 'more'>): Dispatched {
    const { deliveryId, collector, attempt, singleAttempt, token, beginBy, exporterId, generation, settings, round } = row;
    const grant = token === null || beginBy === null ? null : { token, beginBy, generation, settings, attemptSinceReplay: round };
    return { deliveryId, exporterId, collector, attempt, singleAttempt, grant };
}

function eventParameter({ event, owner = null, idempotency, orderKey, recipients }: NewEvent, index: number) {
    const { id, kind, body } = event;
    const types = 'types' in recipients ? recipients.types : null;
    const exporterId = 'exporterId' in recipients ? recipients.exporterId : null;
    const subscribers = subscribersOf(recipients).map(subscriberParameter);
    return { index, id, kind, body, owner, types, exporter_id: exporterId, ...idempotency, order_key: orderKey, subscribers };
}

/** A `test` names its only one. */
function subscribersOf(recipients: Recipients): readonly Subscriber[] {
    if ('types' in recipients) {
        return recipients.subscribers ?? [];
    }

    const { exporterId, message = null } = recipients;
    return message === null ? [] : [{ exporterId, message }];
}

function subscriberParameter({ exporterId, message }: Subscriber) {
    const { contentType, headers, body, failure } = message ?? {};
    return { exporter_id: exporterId, content_type: contentType, headers, body, failure };
}

/** The statement looks for known ids itself; only one that is accepted in the same moment runs into the unique index. */
async function queryAccept(db: Executor, statement: string, parameters: unknown[]): Promise<readonly AcceptedRow[]> {
    try {
        const { rows } = await db.query<AcceptedRow>(statement, parameters);
        return rows;
    } catch (error) {
        throw isUniqueViolation(error) ? storeRefusals.eventExists(error) : error;
    }
}

async function claim(
    db: Executor,
    requests: readonly ClaimRequest[],
    session: string | null,
    maxBytes?: number,
): Promise<readonly (Claim | null)[]> {
    const parameters = requests.map(({ deliveryId, token, duration, grant = null, holds = false }, index) => {
        return { index, id: uuidOrNull(deliveryId), token, duration, grant, holds };
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

    const { rows } = await db.query<{ index: number }>(RECORD_OUTCOMES, [
        JSON.stringify(parameters),
        JSON.stringify({ ...rules, ...SHARES, stopReason: STOPPED_FAILING }),
        JSON.stringify(interrupted(0, INTERRUPTIONS.delivered)),
    ]);
    const held = new Set(rows.map(({ index }) => index));
    return outcomes.map((_, index) => held.has(index));
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
