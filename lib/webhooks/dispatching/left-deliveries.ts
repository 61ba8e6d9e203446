import type { DispatchResult } from '../deliveries/delivery-store.ts';
import type { StoredExporter } from '../exporters/exporter.ts';

/** Of an exporter, what counts where an attempt for it has ended. */
export type EndedFor = Pick<StoredExporter, 'id' | 'ordered'>;

/** What is known of due deliveries for which there was no room: when to look for them again. */
export interface LeftDeliveries {
    /** A dispatch begins. */
    dispatchBegins(): void;
    /**
     * A dispatch has ended. @returns Within how many milliseconds to look again for what it has left, or the store makes due; null if no attempt has ended
     * meanwhile, and the store does not.
     */
    dispatchEnds(result: DispatchResult): number | null;
    /** Notes that acceptance has left deliveries for these exporters. @returns Within how many milliseconds to look for them. */
    noteLeft(exporterIds: readonly string[]): number;
    /**
     * Notes that an attempt for this exporter has ended after `took` milliseconds. @returns Within how many milliseconds to look; null when neither the
     * last dispatch nor acceptance since has left anything that may wait for attempts of this exporter; 0 for an ordered one, of whose order key the next
     * delivery may have become due.
     */
    noteAttemptEnd(exporter: EndedFor, took: number): number | null;
    /** Whether a dispatch would find nothing now, if nobody has accepted anything since the last one. */
    isNothingDue(): boolean;
}

/**
 * Dispatch fills the place of an attempt that has ended. The queue cannot: its entries are done once their deliveries have begun, so that a slow one
 * holds up no other. For how long dispatch may leave the place empty: this part of the time that the attempt took, at most `max` milliseconds.
 * Attempts that took long often end together, by their time limit, and one hand-out for all costs hardly more than one for each.
 */
const PLACE_EMPTY = { part: 1 / 40, max: 50 } as const;

/**
 * Milliseconds before dispatch looks once more for what acceptance has left for an exporter, when the last look was in vain: `first`, doubled with each look
 * that is, up to `max`. An exporter whose receiver is down may get hundreds of events a second, and each look costs as much as several deliveries.
 * An attempt of this process that ends makes room, which is looked for as if nothing had been in vain. Of room that another process has made, the next event
 * that is left tells, or the poll.
 */
const IN_VAIN = { first: 25, max: 200 } as const;

/**
 * Milliseconds after which dispatch looks once more even where it knows of nothing that will be due: another process may have put off a delivery, and
 * have ended since.
 */
const LOOK_EVERY = 5_000;

/** What a process knows of them. */
export function leftDeliveries(monotonic: () => number): LeftDeliveries {
    /** Exporters for which the end of an attempt may unblock deliveries that the last dispatch had to leave. */
    let awaited: ReadonlySet<string> = new Set();
    /** Exporters with attempts whose end the last dispatch may not have seen, and within how many milliseconds to look again. */
    const unseen = new Map<string, number>();
    /** Exporters for which acceptance has left deliveries since the last dispatch began, and before. */
    let left = new Set<string>();
    let looked: ReadonlySet<string> = new Set();
    /** Exporters whose left deliveries were looked for in vain: until when, by `monotonic`, to look no more, and for how long that was to be. */
    const inVain = new Map<string, { readonly until: number; readonly rest: number }>();
    /** Until when, by `monotonic`, nothing is due but what is accepted. */
    let nothingUntil = Number.NEGATIVE_INFINITY;
    /** Whether, since a dispatch has begun, something has happened that it may not have seen. */
    let isOutdated = false;

    function outdate(): void {
        isOutdated = true;
        nothingUntil = Number.NEGATIVE_INFINITY;
    }

    function restAfter(exporterId: string): void {
        const rest = Math.min(IN_VAIN.max, (inVain.get(exporterId)?.rest ?? IN_VAIN.first / 2) * 2);
        inVain.set(exporterId, { until: monotonic() + rest, rest });
    }

    function forgetOld(): void {
        for (const [exporterId, { until }] of inVain) {
            if (until + IN_VAIN.max < monotonic()) {
                inVain.delete(exporterId);
            }
        }
    }

    return {
        dispatchBegins() {
            isOutdated = false;
            unseen.clear();
            looked = left;
            left = new Set();
        },

        dispatchEnds({ handedOut, waitsFor, nextDueIn, goOnIn = null }) {
            const isKnown = nextDueIn !== undefined && !isOutdated;
            nothingUntil = isKnown ? monotonic() + Math.min(LOOK_EVERY, nextDueIn ?? LOOK_EVERY) : Number.NEGATIVE_INFINITY;
            const served = new Set(handedOut.map(({ exporterId }) => exporterId));
            for (const exporterId of served) {
                inVain.delete(exporterId);
            }
            for (const exporterId of looked) {
                if (!served.has(exporterId)) {
                    restAfter(exporterId);
                }
            }
            forgetOld();
            awaited = new Set(waitsFor);
            return waitsFor.map((exporterId) => unseen.get(exporterId) ?? null).reduce(sooner, goOnIn);
        },

        noteLeft(exporterIds) {
            outdate();
            const waits = exporterIds.map((exporterId) => {
                left.add(exporterId);
                return Math.max(0, (inVain.get(exporterId)?.until ?? 0) - monotonic());
            });
            return Math.min(...waits);
        },

        noteAttemptEnd({ id, ordered }, took) {
            outdate();
            inVain.delete(id);
            if (ordered) {
                return 0;
            }
            const within = Math.min(PLACE_EMPTY.max, Math.floor(took * PLACE_EMPTY.part));
            unseen.set(id, Math.min(within, unseen.get(id) ?? within));
            return awaited.has(id) || left.has(id) ? within : null;
        },

        isNothingDue: () => monotonic() < nothingUntil,
    };
}

/** The earlier of two times; null stands for never. */
export function sooner(one: number | null, other: number | null): number | null {
    return one === null || other === null ? (one ?? other) : Math.min(one, other);
}
