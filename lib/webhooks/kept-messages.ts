import type { ByteBudget } from './byte-budget.ts';
import type { StoredExporter } from './exporter.ts';
import type { FormattedMessage, StoredEvent } from './new-event.ts';
import type { DeliveryJob } from './queue.ts';
import type { Reservation } from './reservations.ts';
import type { Claim } from './store.ts';

/** Events that this process has just accepted, and settings of exporters, so that what is at hand need not be read. */
export interface KeptMessages {
    /** Keeps the event of deliveries that were just accepted, and what is sent in its place, as far as there is room. */
    keep(deliveries: readonly string[], event: StoredEvent, message?: FormattedMessage | null): void;
    /** What is needed to send, once, when all of it is at hand; its body then is on the exporter's account, the taker's to give back. */
    take(job: DeliveryJob & { readonly reservation: Reservation }, now: Date): Claim | null;
    /** Settings that were read. */
    learn(claim: Claim): void;
    /** Settings are being read. */
    reads<T>(reading: Promise<T>): Promise<T>;
    /** Forgets the settings of an exporter. Resolves when those that were being read have come and are forgotten, too. */
    forget(exporterId: string): Promise<void>;
    /** Forgets an event. Resolves when what was being read has come, which may hold it. */
    erase(eventId: string): Promise<void>;
}

interface KeptEvent {
    readonly event: StoredEvent;
    readonly message: FormattedMessage | null;
    readonly bytes: number;
    /** It was here already when those that nobody takes were looked for. */
    old: boolean;
}

/** Milliseconds after which an event that nobody has taken is let go, or twice as many. What waits for longer is read when its time comes. */
export const KEPT_FOR = 2_500;

/** Exporters whose settings are kept; beyond them, those that were learnt first are forgotten. */
const MAX_EXPORTERS = 1_000;

/** How long a body is while it is sent. */
export function bodyBytes({ event, message }: Pick<Claim, 'event' | 'message'>): number {
    return Buffer.byteLength(message?.body ?? event.body);
}

/** @param bodies What kept bodies are counted in, together with those that are being sent. */
export function keptMessages(bodies: ByteBudget): KeptMessages {
    const events = new Map<string, KeptEvent>();
    const exporters = new Map<string, { readonly exporter: StoredExporter; readonly generation: number }>();
    const reading = new Set<Promise<unknown>>();
    let pruning: NodeJS.Timeout | null = null;

    /** Lets go of what nobody has taken in time. */
    function prune(): void {
        pruning = null;
        for (const [deliveryId, kept] of events) {
            if (kept.old) {
                drop(deliveryId, kept);
            }
            kept.old = true;
        }
        if (events.size > 0) {
            pruneLater();
        }
    }

    function pruneLater(): void {
        if (pruning === null) {
            pruning = setTimeout(prune, KEPT_FOR).unref();
        }
    }

    function drop(deliveryId: string, { bytes }: KeptEvent): void {
        events.delete(deliveryId);
        bodies.giveBack(null, bytes);
    }

    return {
        keep(deliveries, event, message = null) {
            const bytes = bodyBytes({ event, message });
            for (const deliveryId of deliveries) {
                if (!bodies.tryTake(bytes)) {
                    return;
                }
                events.set(deliveryId, { event, message, bytes, old: false });
                pruneLater();
            }
        },

        take({ deliveryId, exporterId = '', attempt, singleAttempt, reservation }, now) {
            const kept = events.get(deliveryId);
            const known = exporters.get(exporterId);
            if (kept === undefined || known?.generation !== reservation.generation) {
                return null;
            }

            events.delete(deliveryId);
            bodies.assign(exporterId, kept.bytes);
            const { token, attemptSinceReplay } = reservation;
            const { event, message } = kept;
            return { deliveryId, token, claimedAt: now, attempt, attemptSinceReplay, singleAttempt, event, message, ...known };
        },

        learn({ exporter, generation }) {
            exporters.delete(exporter.id);
            exporters.set(exporter.id, { exporter, generation });
            const [oldest] = exporters.keys();
            if (exporters.size > MAX_EXPORTERS && oldest !== undefined) {
                exporters.delete(oldest);
            }
        },

        async reads(read) {
            reading.add(read);
            try {
                return await read;
            } finally {
                reading.delete(read);
            }
        },

        async forget(exporterId) {
            exporters.delete(exporterId);
            await Promise.allSettled(reading);
            exporters.delete(exporterId);
        },

        async erase(eventId) {
            for (const [deliveryId, kept] of events) {
                if (kept.event.id === eventId) {
                    drop(deliveryId, kept);
                }
            }
            await Promise.allSettled(reading);
        },
    };
}
