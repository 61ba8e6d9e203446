import type { Claim } from '../deliveries/delivery-store.ts';
import type { DeliveryJob } from '../dispatching/delivery-queue.ts';
import { RESERVATION_TIMES, type Reservation } from '../dispatching/reservations.ts';
import type { StoredEvent } from '../events/new-event.ts';
import type { FormattedMessage } from '../messages/formatted-message.ts';
import type { ByteBudget } from './byte-budget.ts';

/**
 * Keeps events that this process has just accepted or read ahead, and settings of exporters that it has read, so that a delivery with a
 * reservation is sent without a read.
 */
export interface MessageCache {
    /** Adds the event of deliveries that were just accepted or are about to be sent, and what is sent instead of its body, as far as there is memory. */
    add(deliveries: readonly string[], event: StoredEvent, message?: FormattedMessage | null): void;
    /**
     * Takes out what is needed to send a delivery, if all of it is here. From then on its body is on the exporter's account in the body memory,
     * until the caller gives it back.
     */
    take(job: DeliveryJob & { readonly reservation: Reservation }, now: Date): Claim | null;
    /** Adds the settings of an exporter, from a claim that has read them. */
    addSettings(claim: KnownSettings): void;
    /**
     * Whether what a claim has brought is what is known: nobody has read other settings of the exporter since, and this process has changed none, nor
     * erased the event.
     */
    holds(claim: Pick<Claim, 'exporter' | 'generation' | 'event'>): boolean;
    /**
     * Notes a read from the store while it is under way. A read that began before a change of settings may bring the old settings after the
     * change. So whoever forgets settings waits for such reads, and forgets what they brought.
     */
    duringRead<T>(reading: Promise<T>): Promise<T>;
    /** Forgets the settings of an exporter. Resolves when those that were being read have come and are forgotten, too. */
    forgetSettings(exporterId: string): Promise<void>;
    /** Forgets an event. Resolves when what was being read has come, which may hold it. */
    forgetEvent(eventId: string): Promise<void>;
}

type KnownSettings = Pick<Claim, 'exporter' | 'generation'>;

interface CachedEvent {
    readonly event: StoredEvent;
    readonly message: FormattedMessage | null;
    readonly bytes: number;
    /** Whether it was here at the last look for entries that nobody takes. */
    old: boolean;
}

/** An event that nobody takes out is dropped after this many milliseconds, or up to twice as many. A delivery that waits for longer is read from the store. */
export const CACHED_FOR = 2_500;

/** Maximum number of exporters whose settings are cached. Beyond it, those that were read longest ago are forgotten. */
const MAX_EXPORTERS = 1_000;

/** How long a body is while it is sent. */
export function bodyBytes({ event, message }: Pick<Claim, 'event' | 'message'>): number {
    return Buffer.byteLength(message?.body ?? event.body);
}

/** @param bodyMemory The memory in which cached bodies are counted, together with those that are being sent. */
export function messageCache(bodyMemory: ByteBudget): MessageCache {
    const events = new Map<string, CachedEvent>();
    const settings = settingsOfExporters();
    const reading = new Set<Promise<unknown>>();
    /** What was taken out before, and rests, is not sent. */
    const erased = new Set<string>();
    let pruning: NodeJS.Timeout | null = null;

    /** Drops what nobody has taken in time. */
    function prune(): void {
        pruning = null;
        for (const [deliveryId, cached] of events) {
            if (cached.old) {
                drop(deliveryId, cached);
            }
            cached.old = true;
        }
        if (events.size > 0) {
            pruneLater();
        }
    }

    function pruneLater(): void {
        if (pruning === null) {
            pruning = setTimeout(prune, CACHED_FOR).unref();
        }
    }

    function drop(deliveryId: string, { bytes }: CachedEvent): void {
        events.delete(deliveryId);
        bodyMemory.giveBack(null, bytes);
    }

    function dropEvent(eventId: string): void {
        for (const [deliveryId, cached] of events) {
            if (cached.event.id === eventId) {
                drop(deliveryId, cached);
            }
        }
    }

    return {
        add(deliveries, event, message = null) {
            const bytes = bodyBytes({ event, message });
            // Only what is sent is counted.
            const kept = message === null ? event : { ...event, body: '' };
            for (const deliveryId of deliveries) {
                if (!bodyMemory.tryTake(bytes)) {
                    return;
                }
                const before = events.get(deliveryId);
                if (before !== undefined) {
                    drop(deliveryId, before);
                }
                events.set(deliveryId, { event: kept, message, bytes, old: false });
                pruneLater();
            }
        },

        take({ deliveryId, exporterId = '', attempt, singleAttempt, reservation }, now) {
            const cached = events.get(deliveryId);
            const known = settings.of(exporterId);
            if (cached === undefined || known?.generation !== reservation.generation) {
                return null;
            }

            events.delete(deliveryId);
            bodyMemory.assign(exporterId, cached.bytes);
            const { token, attemptSinceReplay } = reservation;
            const { event, message } = cached;
            const { exporter, generation } = known;
            return { deliveryId, token, claimedAt: now, attempt, attemptSinceReplay, singleAttempt, event, message, exporter, generation };
        },

        addSettings: settings.add,
        holds: (claim) => !erased.has(claim.event.id) && settings.hold(claim),

        async duringRead(read) {
            reading.add(read);
            try {
                return await read;
            } finally {
                reading.delete(read);
            }
        },

        async forgetSettings(exporterId) {
            settings.forget(exporterId);
            await Promise.allSettled(reading);
            settings.forget(exporterId);
        },

        async forgetEvent(eventId) {
            erased.add(eventId);
            setTimeout(() => erased.delete(eventId), RESERVATION_TIMES.beginWithin).unref();
            dropEvent(eventId);
            await Promise.allSettled(reading);
            dropEvent(eventId);
        },
    };
}

/** The settings of exporters that a process knows: to `add` and to know whether they `hold`, as {@link MessageCache} says. */
function settingsOfExporters() {
    const known = new Map<string, KnownSettings>();

    return {
        of: (exporterId: string): KnownSettings | undefined => known.get(exporterId),
        forget: (exporterId: string): boolean => known.delete(exporterId),
        hold: ({ exporter, generation }: KnownSettings): boolean => known.get(exporter.id)?.generation === generation,

        add({ exporter, generation }: KnownSettings): void {
            const before = known.get(exporter.id);
            // The generation does not rise with changes that decide nothing about sending; `updatedAt` does.
            const isSame = before?.generation === generation && before.exporter.updatedAt.getTime() === exporter.updatedAt.getTime();
            known.delete(exporter.id);
            // The object is kept, since unsealed values are remembered by it.
            known.set(exporter.id, isSame ? before : { exporter, generation });
            const [oldest] = known.keys();
            if (known.size > MAX_EXPORTERS && oldest !== undefined) {
                known.delete(oldest);
            }
        },
    };
}
