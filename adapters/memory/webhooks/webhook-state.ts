import type { Clock } from '../../../lib/clock.ts';
import type { Attempt, Delivery } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { Replay } from '../../../lib/webhooks/deliveries/replays.ts';
import type { Deployment } from '../../../lib/webhooks/deployment-settings.ts';
import type { Reservation } from '../../../lib/webhooks/dispatching/reservations.ts';
import { SHARES } from '../../../lib/webhooks/dispatching/slot-shares.ts';
import type { Session } from '../../../lib/webhooks/dispatching/worker-session.ts';
import type { ExporterNotice } from '../../../lib/webhooks/events/exporter-notices.ts';
import type { AcceptedEvent, StoredEvent } from '../../../lib/webhooks/events/new-event.ts';
import type { StoredExporter } from '../../../lib/webhooks/exporters/exporter.ts';
import type { ExporterHealth } from '../../../lib/webhooks/exporters/exporter-health.ts';
import type { FormattedMessage } from '../../../lib/webhooks/messages/formatted-message.ts';
import type { ResponseBody } from '../../../lib/webhooks/outcomes/response-bodies.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The rows that both stores share. Maps keep the order of insertion. */
export interface WebhookState {
    readonly exporters: Map<string, ExporterRow>;
    readonly events: Map<string, Mutable<StoredEvent>>;
    /** When the bodies of events were erased, by the ids of these. */
    readonly erased: Map<string, Date>;
    readonly deliveries: Map<string, DeliveryRow>;
    readonly replays: Map<string, ReplayRow>;
    /** How many deliveries there have been. */
    numbered: number;
    /** What was accepted under keys of the callers', by owner and key. */
    readonly keys: Map<string, AcceptedEvent & { readonly digest: string }>;
    /** What became of exporters and was not told yet. */
    notices: readonly ExporterNotice[];
    /** How many notices there have been. */
    noticed: number;
    /** By event. */
    readonly traces: Map<string, { readonly traceparent: string; readonly keptAt: Date }>;
    /** Those whose order keys others wait for: what is not final and in order, and what blocks its key. */
    readonly inOrder: Set<DeliveryRow>;
    /** Those that are not final: all that dispatcher and sweep have to read. */
    readonly active: Set<DeliveryRow>;
    /** By id, with the time until which they are alive. */
    readonly sessions: Map<string, { readonly session: Session; readonly until: Date; readonly spokenAt: Date }>;
    deployment: Deployment;
    /** As of an exporter, of all together. */
    ratePaidUntil: number | null;
    /** How many turns slow exporters have had, where there were too many of them. */
    turnsTaken: number;
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
    /** Its last turn among too many slow exporters; 0 while it had none. */
    turn: number;
    /** What the receiver did last. */
    lastOutcome: ExporterHealth['lastOutcome'];
    /** Whether it has failed or was stopped, which was told, and has taken nothing since. */
    unwell: boolean;
}

/** The breaker of an exporter that never failed. */
export const CLOSED_BREAKER: Omit<
    ExporterRow,
    keyof StoredExporter | 'generation' | 'answersSlowly' | 'ratePaidUntil' | 'turn' | 'lastOutcome' | 'unwell'
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

/** 0: a single attempt that is never retried, 1: first try since it was accepted, or replayed singly, 2: retry, or replayed among many. */
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

/** A replay, and how far it is. */
export interface ReplayRow {
    replay: Replay;
    /** Those of it whose turn has not come yet. Some may have gone on otherwise. */
    left: readonly DeliveryRow[];
    /** Its rate is used up until then. */
    paidUntil: Date;
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
    const { unwell, ratePaidUntil, turn, ...exporter } = rest;
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

/** Begins a new revision if the exporter takes events as a subscriber in one of these versions. */
export function resubscribe(state: WebhookState, ...versions: readonly ExporterRow[]): void {
    if (versions.some((exporter) => takesEvents(exporter) && isSelective(exporter))) {
        state.revision += 1;
    }
}

/** So many milliseconds after the time. */
export function later(time: Date, milliseconds: number): Date {
    return new Date(time.getTime() + milliseconds);
}
