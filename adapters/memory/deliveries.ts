import { randomUUID } from 'node:crypto';
import type { Executor } from '../../lib/executor.ts';
import { INTERRUPTIONS } from '../../lib/webhooks/outcome.ts';
import {
    type AcceptedEvent,
    type Claim,
    type ClaimRequest,
    type Delivery,
    type DeliveryQuery,
    type DeliveryStore,
    type Dispatched,
    type DispatchOptions,
    type NewEvent,
    type Recipients,
    type RecordedOutcome,
    type StoredEvent,
    type SweepOptions,
    storeRefusals,
} from '../../lib/webhooks/store.ts';
import { asDelivery, asExporter, type DeliveryRow, type ExporterRow, interrupt, move, type WebhookState } from './webhook-state.ts';

/** Events, deliveries and attempts of the state. */
export function deliveryStore(state: WebhookState): DeliveryStore {
    return {
        transactions: false,
        accept: async (newEvents, options) => accept(state, newEvents, options?.tx),
        dispatch: async (options) => dispatch(state, options),
        sweep: async (options) => sweep(state, options),
        claim: async (requests) => requests.map((request) => claim(state, request)),
        recordOutcomes: async (outcomes) => outcomes.map((recorded) => recordOutcome(state, recorded)),

        async get(id) {
            const row = state.deliveries.get(id);
            return row === undefined ? null : asDelivery(state, row);
        },

        async attempts(deliveryId) {
            const history = state.deliveries.get(deliveryId)?.history ?? [];
            return history.map(({ token: _, lost: __, ...attempt }) => structuredClone(attempt));
        },

        list: async (query) => list(state, query),
        replay: async (id, at) => replay(state, id, at),
    };
}

function list(state: WebhookState, { state: wanted, exporterId, after, limit }: DeliveryQuery): readonly Delivery[] {
    const below = after === undefined ? Number.POSITIVE_INFINITY : (state.deliveries.get(after)?.seq ?? -1);
    const rows = [...state.deliveries.values()].filter((row) => {
        return row.seq < below && (wanted ?? row.state) === row.state && (exporterId ?? row.exporterId) === row.exporterId;
    });
    return rows
        .reverse()
        .slice(0, limit)
        .map((row) => asDelivery(state, row));
}

function replay(state: WebhookState, id: string, at: Date): Delivery {
    const row = state.deliveries.get(id);
    if (row === undefined) {
        throw storeRefusals.unknownDelivery();
    }
    if (!state.exporters.has(row.exporterId) || (row.state !== 'delivered' && row.state !== 'exhausted')) {
        throw storeRefusals.notReplayable();
    }

    move(state, row, 'pending', at);
    row.dueAt = at;
    row.attemptsSinceReplay = 0;
    row.priority = row.priority === 0 ? 0 : 1;
    return asDelivery(state, row);
}

/** As `DeliveryStore.accept` says. */
function accept(state: WebhookState, newEvents: readonly NewEvent[], tx: Executor | undefined): readonly AcceptedEvent[] {
    if (tx !== undefined) {
        throw storeRefusals.noTransactions();
    }

    const addressed = newEvents.map(({ recipients }) => findRecipients(state, recipients));
    const ids = new Set(newEvents.map(({ event }) => event.id));
    if (ids.size < newEvents.length || [...ids].some((id) => state.events.has(id))) {
        throw storeRefusals.eventExists();
    }

    return newEvents.map((newEvent, index) => {
        const event = structuredClone(newEvent.event);
        const singleAttempt = 'exporterId' in newEvent.recipients;
        const rows = (addressed[index] ?? []).map((exporter) => newRow(state, event, exporter, singleAttempt));
        state.events.set(event.id, event);
        return { eventId: event.id, deliveries: rows.map(({ id }) => id) };
    });
}

function findRecipients(state: WebhookState, recipients: Recipients): readonly ExporterRow[] {
    if ('types' in recipients) {
        return [...state.exporters.values()].filter(({ state, type }) => state === 'running' && recipients.types.includes(type));
    }

    const exporter = state.exporters.get(recipients.exporterId);
    if (exporter === undefined) {
        throw storeRefusals.unknownExporter();
    }
    return [exporter];
}

function newRow(state: WebhookState, event: StoredEvent, exporter: ExporterRow, singleAttempt: boolean): DeliveryRow {
    const row: DeliveryRow = {
        id: randomUUID(),
        seq: state.deliveries.size,
        event,
        exporterId: exporter.id,
        collector: exporter.collector,
        state: 'pending',
        priority: singleAttempt ? 0 : 1,
        attempts: 0,
        attemptsSinceReplay: 0,
        dueAt: event.createdAt,
        queuedAt: null,
        finishedAt: null,
        claim: null,
        lastCode: null,
        history: [],
    };
    state.deliveries.set(row.id, row);
    state.unfinished.add(row);
    return row;
}

/** As `DeliveryStore.dispatch` says. Exporters alternate, so that the longest backlog does not use up a small limit. */
function dispatch(state: WebhookState, options: DispatchOptions): readonly Dispatched[] {
    const ranked = [...groupByExporter(state)].flatMap(([exporter, rows]) => {
        return pickWithinWindow(exporter, rows, options).map((row, rank) => ({ row, rank, collector: exporter.collector }));
    });
    const order = (a: (typeof ranked)[number], b: (typeof ranked)[number]): number => {
        return Number(a.row.priority > 0) - Number(b.row.priority > 0) || a.rank - b.rank || byPriorityAndAge(a.row, b.row);
    };

    return ranked
        .sort(order)
        .slice(0, options.limit)
        .map(({ row, collector }) => {
            row.state = 'queued';
            row.queuedAt = options.now;
            return { deliveryId: row.id, collector, attempt: row.attempts + 1 };
        });
}

function groupByExporter(state: WebhookState): Map<ExporterRow, DeliveryRow[]> {
    const groups = new Map<ExporterRow, DeliveryRow[]>();
    for (const row of state.unfinished) {
        const exporter = state.exporters.get(row.exporterId);
        if (exporter !== undefined) {
            const rows = groups.get(exporter) ?? [];
            groups.set(exporter, rows);
            rows.push(row);
        }
    }
    return groups;
}

function pickWithinWindow(exporter: ExporterRow, rows: readonly DeliveryRow[], options: DispatchOptions): DeliveryRow[] {
    const due = rows.filter((row) => row.state === 'pending' && row.dueAt <= options.now).sort(byPriorityAndAge);
    const inFlight = rows.filter((row) => row.state !== 'pending').length;
    const room = options.window - inFlight;
    const ordinaryRoom = ordinaryWindow(exporter, options) - inFlight;

    return due.filter((row, rank) => rank < (row.priority === 0 ? room : ordinaryRoom));
}

/** How many deliveries of the exporter, single-attempt ones aside, may be in flight. */
function ordinaryWindow(exporter: ExporterRow, { window, breakerAfter, now }: DispatchOptions): number {
    if (exporter.state !== 'running') {
        return 0;
    }
    if (exporter.consecutiveFailures < breakerAfter) {
        return window;
    }
    return exporter.probeAt === null || exporter.probeAt <= now ? 1 : 0;
}

function byPriorityAndAge(a: DeliveryRow, b: DeliveryRow): number {
    return a.priority - b.priority || a.dueAt.getTime() - b.dueAt.getTime() || a.seq - b.seq;
}

/** As `DeliveryStore.claim` says, for one delivery. */
function claim(state: WebhookState, { deliveryId, token, now, expiresAt }: ClaimRequest): Claim | null {
    const row = state.deliveries.get(deliveryId);
    const exporter = state.exporters.get(row?.exporterId ?? '');
    if (row?.state !== 'queued' || exporter === undefined) {
        return null;
    }

    const singleAttempt = row.priority === 0;
    if (!singleAttempt && exporter.state !== 'running') {
        move(state, row, 'pending', now);
        return null;
    }

    row.attempts += 1;
    row.attemptsSinceReplay += 1;
    row.claim = { token, expiresAt };
    row.history.push({ number: row.attempts, token, startedAt: now, finishedAt: null, outcome: null, lost: false, late: false });
    move(state, row, 'sending', now);
    const { attempts, attemptsSinceReplay, event } = row;
    return {
        deliveryId,
        token,
        attempt: attempts,
        attemptSinceReplay: attemptsSinceReplay,
        singleAttempt,
        event: structuredClone(event),
        exporter: asExporter(exporter),
    };
}

/** As `DeliveryStore.recordOutcomes` says, for one outcome. */
function recordOutcome(state: WebhookState, recorded: RecordedOutcome): boolean {
    const row = state.deliveries.get(recorded.deliveryId);
    const attempt = row?.history.find(({ token }) => token === recorded.token);
    if (row === undefined || attempt === undefined) {
        return false;
    }

    const held = row.claim?.token === recorded.token;
    if (held || (attempt.lost && !attempt.late)) {
        attempt.finishedAt = recorded.finishedAt;
        attempt.outcome = structuredClone(recorded.outcome);
        attempt.late = !held;
    }
    if (held) {
        applyNextStep(state, row, recorded);
        applyHealth(state, recorded);
    }
    return held;
}

function applyNextStep(state: WebhookState, row: DeliveryRow, { next, outcome, finishedAt }: RecordedOutcome): void {
    move(state, row, next.state, finishedAt);
    row.lastCode = outcome.code;
    if (next.state === 'pending') {
        row.dueAt = next.dueAt;
        row.priority = row.priority === 0 ? 0 : 2;
    }
}

function applyHealth(state: WebhookState, { exporterId, health, probeAt, stopReason, finishedAt }: RecordedOutcome): void {
    const exporter = state.exporters.get(exporterId);
    if (exporter === undefined) {
        return;
    }

    if (health === 'success') {
        Object.assign(exporter, { consecutiveFailures: 0, probeAt: null });
    } else if (health === 'failure') {
        exporter.consecutiveFailures += 1;
        exporter.probeAt = probeAt ?? exporter.probeAt;
    }
    if (stopReason !== null && exporter.state === 'running') {
        Object.assign(exporter, { state: 'stopped', stopReason, updatedAt: finishedAt });
    }
}

/** As `DeliveryStore.sweep` says. */
function sweep(state: WebhookState, { now, queuedBefore, limit }: SweepOptions): readonly Dispatched[] {
    const rows = [...state.unfinished];
    const expired = rows.filter(({ claim }) => claim !== null && claim.expiresAt <= now).slice(0, limit);
    for (const row of expired) {
        interrupt(row, now, INTERRUPTIONS.expired);
        row.dueAt = now;
        move(state, row, row.priority === 0 ? 'exhausted' : 'pending', now);
        row.priority = row.priority === 0 ? 0 : 2;
    }

    const lost = rows.filter((row) => row.state === 'queued' && row.queuedAt !== null && row.queuedAt < queuedBefore);
    return lost.slice(0, limit).map((row) => requeue(state, row, now));
}

function requeue(state: WebhookState, row: DeliveryRow, now: Date): Dispatched {
    row.queuedAt = now;
    const collector = state.exporters.get(row.exporterId)?.collector ?? row.collector;
    return { deliveryId: row.id, collector, attempt: row.attempts + 1 };
}
