/** What a store tells with a heartbeat: whether there is any of what every process looks for again and again. */
export interface Outlook {
    /** Generation of the deployment's settings; 0 before a host has stored any. */
    readonly settings: number;
    /** A number that changes when deliveries are accepted. */
    readonly accepted: number;
    /** Whether any delivery is `queued` or `sending`: without one a sweep finds nothing. */
    readonly inFlight: boolean;
    /** Whether any replay is unfinished. */
    readonly replays: boolean;
    /** Whether any notice of an exporter waits to be published. */
    readonly notices: boolean;
}

/** Somebody who listens for what others store. */
export interface Listening {
    /** Resolves once it listens, once its first try has failed, or when it was closed before. Never rejects. */
    readonly ready: Promise<void>;
    /** Whether it listens now, as far as it knows. Absent, what was accepted is looked for each second. */
    isListening?(): boolean;
    /** Stops listening at once; resolves when what it used is free. */
    close(): Promise<void>;
}

/** What the store has told this process last, for as long as that holds. */
export interface Lookout {
    /** @param asked This process's own, monotonic time at which the store was asked. */
    heard(outlook: Outlook, asked: number): void;
    /** This process has handed out deliveries: that none was in flight before does not hold any more. */
    handedOut(): void;
    /** Whether the store has told that there is none of it. False where it has told nothing lately, or does not tell such things. */
    rulesOut(what: 'inFlight' | 'replays' | 'notices'): boolean;
    /** Whether a heartbeat of the last so many milliseconds was answered, and so those of others could be. */
    hasHeardWithin(milliseconds: number): boolean;
    /** Whether deliveries have been accepted lately, as far as the store has told: a transaction may have been open meanwhile. */
    hasAccepted(): boolean;
}

/** A time that has come, whatever the store has told. */
export const AT_ONCE: number = Number.NEGATIVE_INFINITY;

/** Milliseconds for which it holds, so that one heartbeat follows another in time. */
const HOLDS_FOR = 3_000;

/** Milliseconds for which what was accepted in a transaction that nobody hears of is looked for. */
const ACCEPTED_FOR = 10_000;

/** Of a process that has heard nothing yet. */
export function lookoutOf(monotonic: () => number): Lookout {
    let last: (Outlook & { readonly asked: number }) | null = null;
    let handedOutAt = Number.NEGATIVE_INFINITY;
    let acceptedAt = Number.NEGATIVE_INFINITY;
    return {
        heard(outlook, asked) {
            acceptedAt = outlook.accepted === last?.accepted ? acceptedAt : monotonic();
            last = { ...outlook, asked };
        },

        handedOut() {
            handedOutAt = monotonic();
        },

        rulesOut(what) {
            const isOutdated = last === null || monotonic() - last.asked > HOLDS_FOR || (what === 'inFlight' && last.asked <= handedOutAt);
            return !isOutdated && last?.[what] === false;
        },

        hasHeardWithin: (milliseconds) => last !== null && monotonic() - last.asked <= milliseconds,

        hasAccepted: () => monotonic() - acceptedAt <= ACCEPTED_FOR,
    };
}
