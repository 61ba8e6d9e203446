/** The bytes of bodies that a process holds at once, each on the account of an exporter, or on nobody's while it is not being sent. */
export interface ByteBudget {
    /**
     * How many bytes the exporter may take now: at least those of the largest body, or 0 while it has to wait. An exporter that holds nothing
     * waits until the largest body fits. One that holds bytes waits until two largest bodies fit, and until it holds fewer bytes than would be left
     * free if it took the largest body too.
     *
     * @param expected Bytes that are on nobody's account yet, but may come. None by default.
     */
    allowance(exporterId: string, expected?: number): number;
    /** The bytes that an exporter holds. */
    bytesOf(exporterId: string): number;
    take(exporterId: string, bytes: number): void;
    /** Takes bytes on nobody's account. Refuses if more than half of all bytes would be taken then, since the other half is for exporters that wait. */
    tryTake(bytes: number): boolean;
    /** How many bytes `tryTake` could take now. */
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
 * A budget that is shared as network switches share a buffer among their ports (dynamic thresholds, Choudhury and Hahne, with a factor of 1). An
 * exporter is given more only while it holds less than is free. Where three exporters want all they can get, each thus gets a quarter, and a quarter
 * stays free; with `n` of them all these are parts of `n + 1`. The free part lets further exporters begin at once, however long the others keep
 * theirs. Where more exporters want to send than largest bodies fit in, each waits until one body fits.
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
            // It takes at most half of the difference, after which it holds as much as is free.
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
