import type { Claim, RecordedOutcome } from '../deliveries/delivery-store.ts';
import type { Outcome, OutcomeCode } from '../outcomes/outcome.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/**
 * Emitted by the process that has recorded the outcome of an attempt: `failed` is tried again, `exhausted` is not. `poisoned` is emitted by the
 * process that has set the delivery aside, after attempts whose processes ended. Nothing is emitted for what came too late, and nothing twice;
 * what must not be missed is in the rows.
 */
export interface DeliveryEvent extends Pick<Outcome, 'code' | 'status' | 'detail' | 'certificate'> {
    readonly type: (typeof DELIVERY_EVENTS)[number];
    readonly deliveryId: string;
    readonly eventId: string;
    /** Of the event, for example `idr_investigation_created`. */
    readonly kind: string;
    readonly exporterId: string;
    readonly collector: string;
    /** Number of the attempt since the delivery was accepted, from 1. */
    readonly attempt: number;
    /** Whether it has a single attempt and is never retried: a `test`. */
    readonly singleAttempt: boolean;
    /** Milliseconds that the attempt took. */
    readonly duration: number;
    /**
     * Milliseconds from the acceptance of the event to the end of the attempt, with those for which it was `held`; null after an attempt that
     * was `interrupted` or came before a replay, and when it is `poisoned`.
     */
    readonly latency: number | null;
}

/** What became of an exporter: emitted by one process of the deployment, the first that finds it noted in the store. */
export interface ExporterEvent {
    readonly type: (typeof EXPORTER_EVENTS)[number];
    readonly exporterId: string;
    readonly collector: string;
    /** When it was, in the store's time. */
    readonly at: Date;
    /** Failures in a row. */
    readonly failures: number;
    /** Since when it fails or, of one that has recovered, had failed; null when no failure is on record. */
    readonly failingSince: Date | null;
    /** Why it was stopped, else null. */
    readonly reason: string | null;
    /** Of the last outcome, null before the first. */
    readonly code: OutcomeCode | null;
}

/** Names of the events that are told of exporters. */
export const EXPORTER_EVENTS = ['exporter.failing', 'exporter.stopped', 'exporter.recovered'] as const;

/** What is emitted for an event that was accepted for the first time, by the process that published it. */
export interface AcceptedNotice {
    readonly type: 'event.accepted';
    readonly eventId: string;
    readonly kind: string;
    /** How many exporters want it. */
    readonly deliveries: number;
    /** Whether it is accepted only if a transaction of the application commits, which it has not yet. */
    readonly inTransaction: boolean;
}

/** What is emitted to `onEvent`, a function of the application; it is sent to no receiver. */
export type WebhookEvent = DeliveryEvent | AcceptedNotice | ExporterEvent;

/** Names of the events that are told of deliveries. */
export const DELIVERY_EVENTS = ['delivery.delivered', 'delivery.failed', 'delivery.exhausted', 'delivery.poisoned'] as const;

const EVENT_TYPES = { delivered: 'delivery.delivered', exhausted: 'delivery.exhausted', pending: 'delivery.failed' } as const;

/** What is emitted for an outcome that was recorded. */
export function deliveryEvent(claim: Claim, { outcome, next }: RecordedOutcome): DeliveryEvent {
    const { deliveryId, event, exporter, attempt, attemptSinceReplay, singleAttempt, claimedAt } = claim;
    const { code, status, detail, timings, certificate } = outcome;
    return {
        type: EVENT_TYPES[next.state],
        deliveryId,
        eventId: event.id,
        kind: event.kind,
        exporterId: exporter.id,
        collector: exporter.collector,
        attempt,
        singleAttempt,
        duration: timings.total,
        latency: attempt === attemptSinceReplay ? claimedAt.getTime() - event.createdAt.getTime() + timings.total : null,
        code,
        status,
        detail,
        ...(certificate !== undefined && { certificate }),
    };
}

type EmittingContext = Pick<WebhooksContext, 'deliveries' | 'onEvent' | 'onError'>;

/** Emits an event for each delivery that this process has set aside. So few are that each is read, and a sweep returns no more than ids. */
export async function emitPoisoned(ids: readonly string[], context: EmittingContext): Promise<void> {
    await Promise.all(ids.map((id) => emit(id, context).catch(context.onError)));
}

async function emit(id: string, { deliveries, onEvent }: EmittingContext): Promise<void> {
    const event = await poisonedEvent(id, deliveries);
    if (event !== null) {
        await onEvent(event);
    }
}

/** Null when it is not set aside any more: a success was heard of late, or somebody has replayed it. */
async function poisonedEvent(id: string, deliveries: EmittingContext['deliveries']): Promise<DeliveryEvent | null> {
    const options = { patient: true };
    const [delivery, attempts] = await Promise.all([deliveries.get(id, options), deliveries.attempts(id, options)]);
    const outcome = attempts.at(-1)?.outcome;
    if (delivery?.state !== 'poisoned' || !outcome) {
        return null;
    }

    const { eventId, kind, exporterId, collector } = delivery;
    const { code, status, detail, timings } = outcome;
    return {
        type: 'delivery.poisoned',
        deliveryId: id,
        eventId,
        kind,
        exporterId,
        collector,
        attempt: delivery.attempts,
        singleAttempt: false,
        duration: timings.total,
        latency: null,
        code,
        status,
        detail,
    };
}

/** A line for the log of whoever sends: `info` of what is well again, `warn` of the rest. */
export interface LogLine {
    readonly level: 'info' | 'warn';
    readonly text: string;
}

/** Between two lines of the same exporter that deliveries to it have failed for good, in milliseconds: a receiver may refuse a thousand a second. */
const QUIET = 60_000;

/** Exporters with a line in the last minute. Of more, the one whose line is the longest ago is forgotten, with what was not told since. */
const MAX_TOLD = 10_000;

/** What a line has of a delivery that will not be tried again, and of several. */
const ENDINGS = {
    'delivery.exhausted': { one: 'has failed for good', several: 'have failed for good' },
    'delivery.poisoned': { one: 'is set aside as poisoned', several: 'are set aside as poisoned' },
} as const;

type Ending = keyof typeof ENDINGS;

/** How many deliveries to an exporter have ended since its last line. */
type Untold = Map<Ending, number>;

/**
 * What of all that is emitted belongs into a log: what becomes of an exporter, and of a delivery that is not tried again. Nothing of a try that is repeated,
 * or of a test, whose caller is told. Ids and codes only: no URL, and nothing that a receiver wrote. Of deliveries that have ended within a minute of a line
 * of their exporter the next one says how many; without one, a line of its own, made of whatever is emitted after that minute.
 *
 * @param now A clock that does not jump, in milliseconds.
 */
export function logLines(now: () => number = () => performance.now()): (event: WebhookEvent) => LogLine | null {
    // The line that is the longest ago comes first.
    const told = new Map<string, { readonly at: number; readonly untold: Untold }>();

    function ended(event: DeliveryEvent, type: Ending): LogLine | null {
        const { exporterId } = event;
        const last = told.get(exporterId);
        if (last !== undefined && now() - last.at < QUIET) {
            last.untold.set(type, (last.untold.get(type) ?? 0) + 1);
            return null;
        }

        told.delete(exporterId);
        told.set(exporterId, { at: now(), untold: new Map() });
        const [oldest] = told.keys();
        if (told.size > MAX_TOLD && oldest !== undefined) {
            told.delete(oldest);
        }
        return endedLine(event, type, last?.untold);
    }

    /** Of an exporter of which nothing has been said for a minute, and forgets those of which there is nothing to say. */
    function overdue(): LogLine | null {
        for (const [exporterId, { at, untold }] of told) {
            if (now() - at < QUIET) {
                return null;
            }
            told.delete(exporterId);
            if (untold.size > 0) {
                return { level: 'warn', text: `Of deliveries to exporter ${exporterId} ${countsOf(untold)}` };
            }
        }
        return null;
    }

    return (event) => {
        switch (event.type) {
            case 'exporter.failing':
            case 'exporter.stopped':
            case 'exporter.recovered': {
                const { untold } = told.get(event.exporterId) ?? {};
                const line = exporterLine(event, untold);
                untold?.clear();
                return line;
            }
            case 'delivery.exhausted':
            case 'delivery.poisoned':
                return (event.singleAttempt ? null : ended(event, event.type)) ?? overdue();
            default:
                return overdue();
        }
    };
}

function exporterLine(event: ExporterEvent, untold: Untold = new Map()): LogLine {
    const { exporterId, collector } = event;
    const others = untold.size === 0 ? '' : `; of deliveries to it ${countsOf(untold)}`;
    return {
        level: event.type === 'exporter.recovered' ? 'info' : 'warn',
        text: `Exporter ${exporterId} of collector ${collector} ${stateOf(event)}${others}`,
    };
}

function stateOf({ type, failures, failingSince, reason, code }: ExporterEvent): string {
    if (type === 'exporter.recovered') {
        return 'has recovered: its receiver takes deliveries again';
    }
    if (type === 'exporter.stopped') {
        return `was stopped: ${reason}`;
    }
    const since = failingSince === null ? '' : ` since ${failingSince.toISOString()}`;
    const last = code === null ? '' : `, the last one ${code}`;
    return `is failing: ${failures} ${failures === 1 ? 'failure' : 'failures'} in a row${since}${last}`;
}

function endedLine({ deliveryId, exporterId, attempt, code, status }: DeliveryEvent, type: Ending, untold: Untold = new Map()): LogLine {
    const came = `${code}${status === null ? '' : `, status ${status}`}`;
    const others = untold.size === 0 ? '' : `; of others to this exporter ${countsOf(untold)}`;
    return {
        level: 'warn',
        text: `Delivery ${deliveryId} to exporter ${exporterId} ${ENDINGS[type].one} after attempt ${attempt}: ${came}; it is kept for replay${others}`,
    };
}

function countsOf(untold: Untold): string {
    const counts = Array.from(untold, ([type, count]) => `${count} more ${ENDINGS[type][count === 1 ? 'one' : 'several']}`);
    return `${counts.join(' and ')} since its last line`;
}
