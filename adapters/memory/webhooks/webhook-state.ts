import type { Clock } from '../../../lib/clock.ts';
import type { Attempt, Delivery, DeliveryState, Dispatched } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { Deployment } from '../../../lib/webhooks/deployment-settings.ts';
import type { Reservation } from '../../../lib/webhooks/dispatching/reservations.ts';
import type { Session } from '../../../lib/webhooks/dispatching/session.ts';
import { SHARES } from '../../../lib/webhooks/dispatching/shares.ts';
import type { ExporterNotice } from '../../../lib/webhooks/events/exporter-notices.ts';
import type { AcceptedEvent, FormattedMessage, StoredEvent } from '../../../lib/webhooks/events/new-event.ts';
import type { StoredExporter } from '../../../lib/webhooks/exporters/exporter.ts';
import type { ExporterHealth } from '../../../lib/webhooks/exporters/exporter-health.ts';
import { faultDelay } from '../../../lib/webhooks/outcomes/breaker.ts';
import { INTERRUPTIONS, interrupted } from '../../../lib/webhooks/outcomes/outcome.ts';
import type { ResponseBody } from '../../../lib/webhooks/outcomes/response-bodies.ts';
import { keepOrder } from './order-keys.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The rows that both stores share. Maps keep the order of insertion. */
export interface WebhookState {
    readonly exporters: Map<string, ExporterRow>;
    readonly events: Map<string, Mutable<StoredEvent>>;
    /** When the bodies of events were erased, by the ids of these. */
    readonly erased: Map<string, Date>;
    readonly deliveries: Map<string, DeliveryRow>;
    /** How many deliveries there have been. */
    numbered: number;
    /** What was accepted under keys of the callers', by owner and key. */
    readonly keys: Map<string, AcceptedEvent & { readonly digest: string }>;
    /** What became of exporters and was not told yet. */
    notices: readonly ExporterNotice[];
    /** By event. */
    readonly traces: Map<string, { readonly traceparent: string; readonly keptAt: Date }>;
    /** Those whose order keys others wait for: what is not final and in order, and what blocks its key. */
    readonly inOrder: Set<DeliveryRow>;
    /** Those that are not final: all that dispatcher and sweep have to read. */
    readonly unfinished: Set<DeliveryRow>;
    /** By id, with the time until which they are alive. */
    readonly sessions: Map<string, { readonly session: Session; readonly until: Date; readonly spokenAt: Date }>;
    deployment: Deployment;
    /** As of an exporter, of all together. */
    ratePaidUntil: number | null;
    /** How often what running exporters choose has been changed. */
    revision: number;
    /** The store's time. */
    readonly clock: Clock;
    /** Makes the ids of deliveries. */
    readonly newId: () => string;
}

/** An exporter and the state of its breaker. */
export interface ExporterRow extends Mutable<StoredExporter> {
    /** How often its settings have been changed. */
    generation: number;
    /** While the breaker is open: when it is probed next. */
    probeAt: Date | null;
    /** When the last failure was counted: those that began before belong to it. */
    failedAt: Date | null;
    /** When the first failure since the last success was counted. */
    failingSince: Date | null;
    /** Until when the receiver wants to be left alone; not null until it has taken a probe. */
    pausedUntil: Date | null;
    /** When it took the first delivery after its breaker was open. */
    recoveredAt: Date | null;
    /** Its window while it grows, null when it has grown. */
    slowStart: number | null;
    /** Whether its last attempts took long, see {@link SHARES}. */
    answersSlowly: boolean;
    /** Until when its rate is used up, in milliseconds since the epoch and parts of them; null while it was never used. */
    ratePaidUntil: number | null;
    /** What the receiver did last. */
    lastOutcome: ExporterHealth['lastOutcome'];
    /** Whether it has failed or was stopped, which was told, and has taken nothing since. */
    unwell: boolean;
}

/** The breaker of an exporter that never failed. */
export const CLOSED_BREAKER: Omit<
    ExporterRow,
    keyof StoredExporter | 'generation' | 'answersSlowly' | 'ratePaidUntil' | 'lastOutcome' | 'unwell'
> = {
    probeAt: null,
    failedAt: null,
    failingSince: null,
    pausedUntil: null,
    recoveredAt: null,
    slowStart: null,
};

/** The claim of an open attempt. */
export interface HeldClaim {
    readonly token: string;
    readonly session: string | null;
    readonly expiresAt: Date;
}

/** 0: a single attempt that is never retried, 1: first try since it was accepted or replayed, 2: retry. */
export type Priority = 0 | 1 | 2;

/** A delivery with its attempts; `collector` is the exporter's when it was accepted or cancelled, for the time after a removal. */
export interface DeliveryRow extends Mutable<Omit<Delivery, 'eventId' | 'kind' | 'createdAt'>> {
    readonly seq: number;
    readonly event: StoredEvent;
    /** Null for one that waits for no other: of an event without a key, or of an exporter that was not ordered. */
    readonly orderKey: string | null;
    message: FormattedMessage | null;
    priority: Priority;
    attemptsSinceReplay: number;
    /** Faults of ours in a row. */
    faults: number;
    /** Claims that ran out in a row. */
    expiredClaims: number;
    queuedAt: Date | null;
    /** While it is queued with its claim. */
    reservation: Pick<Reservation, 'token' | 'beginBy'> | null;
    /** Its reservation was taken back, and it has not been claimed since. */
    takenBack: boolean;
    claim: HeldClaim | null;
    readonly history: AttemptRow[];
    /** What receivers answered, by the tokens of attempts. */
    readonly responses: Map<string, ResponseBody>;
}

/** An attempt with the claim it was made under. */
export interface AttemptRow extends Mutable<Attempt> {
    readonly token: string;
    /** The claim was taken away before its holder had recorded its outcome. */
    lost: boolean;
}

const FINAL: readonly DeliveryState[] = ['delivered', 'exhausted', 'poisoned', 'cancelled', 'erased'];

/** Moves a delivery to a state; a final one is stamped with `at`. */
export function move(state: WebhookState, row: DeliveryRow, next: DeliveryState, at: Date): void {
    const final = FINAL.includes(next);
    keepOrder(state, row, next, final);
    row.state = next;
    row.finishedAt = final ? at : null;
    row.reservation = null;
    if (next !== 'sending') {
        row.claim = null;
    }
    if (final) {
        state.unfinished.delete(row);
    } else {
        state.unfinished.add(row);
    }
}

/** Ends the open attempt of a delivery that is `sending` for its holder, who was not heard of again. */
export function interrupt(row: DeliveryRow, at: Date, detail: string): void {
    const attempt = row.history.at(-1);
    if (attempt !== undefined) {
        attempt.finishedAt = at;
        attempt.outcome = interrupted(at.getTime() - attempt.startedAt.getTime(), detail);
        attempt.lost = true;
        row.lastCode = 'interrupted';
    }
}

/** Ends an unfinished delivery for good; an attempt that is being made loses its claim. */
export function end(state: WebhookState, row: DeliveryRow, next: 'cancelled' | 'erased', at: Date): void {
    if (row.state === 'sending') {
        interrupt(row, at, next === 'cancelled' ? INTERRUPTIONS.removed : INTERRUPTIONS.erased);
    }
    move(state, row, next, at);
}

/** The delivery as the store returns it, a copy. */
export function asDelivery(state: WebhookState, row: DeliveryRow): Delivery {
    const { id, event, exporterId, state: now, attempts, dueAt, finishedAt, lastCode } = row;
    const collector = state.exporters.get(exporterId)?.collector ?? row.collector;
    const { id: eventId, kind, createdAt } = event;
    return structuredClone({ id, eventId, kind, exporterId, collector, state: now, attempts, dueAt, createdAt, finishedAt, lastCode });
}

/** The exporter as the store returns it, a copy. */
export function asExporter(row: ExporterRow): StoredExporter {
    const { generation, probeAt, failedAt, failingSince, pausedUntil, recoveredAt, slowStart, answersSlowly, lastOutcome, ...rest } = row;
    const { unwell, ratePaidUntil, ...exporter } = rest;
    return structuredClone(exporter);
}

/** Whether more than a `test` is sent to it. */
export function isSentTo({ state, pausedAt }: Pick<StoredExporter, 'state' | 'pausedAt'>): boolean {
    return state === 'running' && pausedAt === null;
}

/** Whether it chooses which events it gets, or in which format. */
export function isSelective({ kinds, filter, owner, format }: Pick<StoredExporter, 'kinds' | 'filter' | 'owner' | 'format'>): boolean {
    return kinds !== null || filter !== null || owner !== null || format !== 'native';
}

/** Whether events are accepted for it: what was stopped by an outcome holds them. */
export function takesEvents({ state, stopReason }: Pick<StoredExporter, 'state' | 'stopReason'>): boolean {
    return state === 'running' || stopReason !== null;
}

/** The deliveries that have not ended, held ones too. */
export function unendedOf(state: WebhookState, wanted: (row: DeliveryRow) => boolean): readonly DeliveryRow[] {
    return [...state.deliveries.values()].filter((row) => (state.unfinished.has(row) || row.state === 'held') && wanted(row));
}

/** What running exporters choose has changed, when this one has. */
export function resubscribe(state: WebhookState, ...versions: readonly ExporterRow[]): void {
    if (versions.some((exporter) => takesEvents(exporter) && isSelective(exporter))) {
        state.revision += 1;
    }
}

/** Marks a delivery queued, with a claim for whoever begins within so many milliseconds. */
export function handOut(state: WebhookState, row: DeliveryRow, now: Date, beginWithin: number | undefined): Dispatched {
    const exporter = state.exporters.get(row.exporterId) as ExporterRow;
    row.state = 'queued';
    row.queuedAt = now;
    // What nobody was heard of who may have begun it has to be claimed, so that it is seen if it ends its processes.
    const toBeClaimed = beginWithin === undefined || row.takenBack || row.expiredClaims > 0;
    row.reservation = toBeClaimed ? null : { token: state.newId(), beginBy: now.getTime() + beginWithin };
    const { id: exporterId, collector, generation } = exporter;
    const { generation: settings } = state.deployment;
    return {
        deliveryId: row.id,
        exporterId,
        collector,
        attempt: row.attempts + 1,
        singleAttempt: row.priority === 0,
        reservation: row.reservation && { ...row.reservation, generation, settings, attemptSinceReplay: row.attemptsSinceReplay + 1 },
    };
}

/** Opens the attempt of a delivery that is queued, for the holder of the token. */
export function openAttempt(state: WebhookState, row: DeliveryRow, token: string, startedAt: Date): AttemptRow {
    const attempt = { number: row.attempts + 1, token, startedAt, finishedAt: null, outcome: null, lost: false, late: false };
    row.attempts += 1;
    row.attemptsSinceReplay += 1;
    row.takenBack = false;
    row.history.push(attempt);
    move(state, row, 'sending', startedAt);
    return attempt;
}

/** Due after the back-off for faults of ours. The try is not used up, and what was tried for the first time still is. */
export function retryAfterFault(row: DeliveryRow, now: Date): void {
    row.attemptsSinceReplay -= 1;
    row.faults += 1;
    row.dueAt = later(now, faultDelay(row.faults));
}

/** Restarts the retry schedule of a delivery. */
export function restartSchedule(state: WebhookState, row: DeliveryRow, now: Date): void {
    move(state, row, 'pending', now);
    row.dueAt = now;
    Object.assign(row, { attemptsSinceReplay: 0, faults: 0, expiredClaims: 0 });
    row.priority = row.priority === 0 ? 0 : 1;
}

/** So many milliseconds after the time. */
export function later(time: Date, milliseconds: number): Date {
    return new Date(time.getTime() + milliseconds);
}
