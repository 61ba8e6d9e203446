/** So many bytes of bodies that a process holds at once, and on whose account: an exporter's, or null for those that nobody sends yet. */
export interface ByteBudget {
    /**
     * How many bytes the exporter may take now, those of the largest body at least; 0 while it has to wait. One that holds nothing waits
     * until one largest body fits, and one that holds some until what it holds is less than what would be free with one largest body more.
     *
     * @param expected Bytes that are on nobody's account yet, but may come. None by default.
     */
    allowance(exporterId: string, expected?: number): number;
    /** The bytes that an exporter holds. */
    bytesOf(exporterId: string): number;
    take(exporterId: string, bytes: number): void;
    /** Takes them for nobody yet, only if no more than half are taken then: the other half is for who waits. */
    tryTake(bytes: number): boolean;
    /** How many bytes could be taken so. */
    spare(): number;
    /** Puts bytes that were taken for nobody on the account of an exporter. */
    assign(exporterId: string, bytes: number): void;
    giveBack(exporterId: string | null, bytes: number): void;
    /** Called whenever bytes were given back, in a later microtask. */
    whenFreed(listener: () => void): void;
}

/** @see {@link byteBudget} */
export interface ByteBudgetOptions {
    /** All bytes that may be held at once. */
    readonly limit: number;
    /** Those of the largest body, as far as is known before it is read. */
    readonly largest: number;
}

/**
 * A budget that is shared as switches share a buffer among their ports (dynamic thresholds, Choudhury and Hahne, with a factor of 1): what one
 * exporter holds stays below what is free, so that of `n` who want all of it each gets one part of `n + 1`, and the part that is left lets others
 * in at once, however long the `n` keep theirs. Where there are more of them than bodies fit in, they wait for one body each.
 */
export function byteBudget({ limit, largest }: ByteBudgetOptions): ByteBudget {
    const accounts = new Map<string | null, number>();
    let total = 0;
    let freed = (): void => {};

    function change(account: string | null, bytes: number): void {
        const taken = (accounts.get(account) ?? 0) + bytes;
        total += bytes;
        if (taken === 0) {
            accounts.delete(account);
        } else {
            accounts.set(account, taken);
        }
    }

    return {
        allowance(exporterId, expected = 0) {
            const taken = accounts.get(exporterId) ?? 0;
            const free = limit - total - expected - (taken > 0 ? largest : 0);
            const waits = total + expected > 0 && (free < largest || taken >= free);
            return waits ? 0 : Math.max(Math.floor((free - taken) / 2), largest);
        },

        bytesOf: (exporterId) => accounts.get(exporterId) ?? 0,
        take: change,

        tryTake(bytes) {
            const fits = total + bytes <= limit / 2;
            change(null, fits ? bytes : 0);
            return fits;
        },

        spare: () => Math.max(0, Math.floor(limit / 2) - total),

        assign(exporterId, bytes) {
            change(null, -bytes);
            change(exporterId, bytes);
        },

        giveBack(account, bytes) {
            change(account, -bytes);
            queueMicrotask(freed);
        },

        whenFreed(listener) {
            freed = listener;
        },
    };
}
