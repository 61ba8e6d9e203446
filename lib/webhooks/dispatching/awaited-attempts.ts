/**
 * The place of an attempt stays empty for such a part of the time that it took, and no longer than so many milliseconds: attempts that took long end
 * together, by their time limit, and one hand-out for all of them costs hardly more than one for each.
 */
const EMPTY = { part: 1 / 20, most: 100 } as const;

/** Remembers for which exporters the end of an attempt may unblock deliveries that the last dispatch had to leave. */
export function awaitedAttempts() {
    let awaited: ReadonlySet<string> = new Set();
    /** Exporters with attempts that have ended since the last dispatch began, which may not have seen that, and within how long to look again. */
    const unseen = new Map<string, number>();
    return {
        /** A dispatch begins. */
        dispatchBegins(): void {
            unseen.clear();
        },

        /** It has left what waits for attempts of these exporters. @returns Within how many milliseconds to look again; null when none of those has ended. */
        dispatchEnds(waitsFor: readonly string[]): number | null {
            awaited = new Set(waitsFor);
            return waitsFor.map((exporterId) => unseen.get(exporterId) ?? null).reduce(sooner, null);
        },

        /** @returns Within how many milliseconds to look; null when the last dispatch has left nothing that waits for attempts of this exporter. */
        noteAttemptEnd(exporterId: string, took: number): number | null {
            const within = Math.min(EMPTY.most, Math.floor(took * EMPTY.part));
            unseen.set(exporterId, Math.min(within, unseen.get(exporterId) ?? within));
            return awaited.has(exporterId) ? within : null;
        },
    };
}

/** Of two times, of which null is never. */
export function sooner(one: number | null, other: number | null): number | null {
    return one === null || other === null ? (one ?? other) : Math.min(one, other);
}
