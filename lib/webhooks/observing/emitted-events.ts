import type { Claim, RecordedOutcome } from '../deliveries/delivery-store.ts';
import type { Outcome, OutcomeCode } from '../outcomes/outcome.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/**
 * Emitted by the process that has recorded the outcome of an attempt. A `failed` delivery is tried again, an `exhausted` one is not. `poisoned`
 * is emitted by the process that has set the delivery aside, after attempts whose processes ended. Nothing is emitted for an outcome that came
 * too late, nor for a delivery that ends because no worker can send it, and nothing is emitted twice. An emitted event may be missed, if a process
 * ends in between; the rows have everything.
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
     * Milliseconds from the acceptance of the event to the end of the attempt, including the time for which the delivery was `held`. Null when an
     * earlier attempt was `interrupted`, when the delivery was replayed after an attempt, and when it is `poisoned`.
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

/** Types of the emitted events about exporters. */
export const EXPORTER_EVENTS = ['exporter.failing', 'exporter.stopped', 'exporter.recovered'] as const;

/** Emitted for an event that was accepted for the first time, by the process that published it. */
export interface AcceptanceEvent {
    readonly type: 'event.accepted';
    readonly eventId: string;
    readonly kind: string;
    /** How many exporters want it. */
    readonly deliveries: number;
    /** Whether it is accepted only if a transaction of the application commits, which it has not yet. */
    readonly inTransaction: boolean;
}

/** An emitted event: what `onEvent`, a function of the application, is called with. It is sent to no receiver. */
export type WebhookEvent = DeliveryEvent | AcceptanceEvent | ExporterEvent;

/** Types of the emitted events about deliveries. */
export const DELIVERY_EVENTS = ['delivery.delivered', 'delivery.failed', 'delivery.exhausted', 'delivery.poisoned'] as const;

const EVENT_TYPES = { delivered: 'delivery.delivered', exhausted: 'delivery.exhausted', pending: 'delivery.failed' } as const;

/** The emitted event of an outcome that was recorded. */
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

/** Emits an event for each delivery that this process has set aside. A sweep returns only their ids; they are so few that each is read by itself. */
export async function emitPoisoned(ids: readonly string[], context: EmittingContext): Promise<void> {
    await Promise.all(ids.map((id) => emit(id, context).catch(context.onError)));
}

async function emit(id: string, { deliveries, onEvent }: EmittingContext): Promise<void> {
    const event = await poisonedEvent(id, deliveries);
    if (event !== null) {
        await onEvent(event);
    }
}

/** Null when it is not set aside any more: an outcome that came late was a success, or somebody has replayed it. */
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

/** A line for the log of a process that sends: `info` when something is well again, else `warn`. */
export interface LogLine {
    readonly level: 'info' | 'warn';
    readonly text: string;
}

/** Milliseconds between two lines that deliveries to the same exporter have failed for good, since a receiver may refuse a thousand a second. */
const QUIET = 60_000;

/**
 * Maximum number of exporters that are remembered with a line in the last minute. Beyond it, the one with the oldest line is forgotten, with what
 * was not told of it since.
 */
const MAX_TOLD = 10_000;

/** The words of a line about one delivery that will not be tried again, and about several. */
const ENDINGS = {
    'delivery.exhausted': { one: 'has failed for good', several: 'have failed for good' },
    'delivery.poisoned': { one: 'is set aside as poisoned', several: 'are set aside as poisoned' },
} as const;

type Ending = keyof typeof ENDINGS;

/** How many deliveries to an exporter have ended since its last line. */
type Untold = Map<Ending, number>;

/**
 * Turns emitted events into lines of a log: about what becomes of an exporter, and about deliveries that are not tried again. There is no line
 * about a failure that is tried again, nor about a test, whose caller is told. Lines have ids and codes only: no URL, and nothing that a receiver
 * wrote. Deliveries that end within a minute after a line of their exporter are only counted, and the next line tells how many they are. If the
 * exporter has no other event, the first event of any kind after that minute brings that line.
 *
 * @param now A clock that does not jump, in milliseconds.
 */
export function logLines(now: () => number = () => performance.now()): (event: WebhookEvent) => LogLine | null {
    // Oldest line first.
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

    /** The line of an exporter whose last line is more than a minute ago. Exporters about which there is nothing to say are forgotten. */
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
