import { machineClock } from '../../clock.ts';

/**
 * A claim that is made before anybody asks for it, when a delivery is handed out (marked `queued`, and given to the queue as a job). It is for
 * whoever gets the job: its token is in the delivery's row and in the job, and it belongs to no session yet. The worker that gets the job before
 * `beginBy` sends without asking the store. A delivery whose attempt has not begun by then is taken back: it becomes `pending`. A reservation serves
 * one hand-out: a job that may have been handed out before has none.
 */
export interface Reservation {
    readonly token: string;
    /** The store's time, in milliseconds since the epoch, by which the attempt must have begun. */
    readonly beginBy: number;
    /** Generation of the exporter at the hand-out: a number that rises with every change that decides what is sent to its receiver, or whether. */
    readonly generation: number;
    /** As `Claim.attemptSinceReplay`. */
    readonly attemptSinceReplay: number;
    /**
     * Generation of the deployment's settings, {@link Deployment.generation}, when it was handed out: it may be later than that of the process that
     * asked. The name is that of job data, which other releases read.
     */
    readonly settings: number;
}

/** What is left of a reservation once it may be begun under no more: that whoever gets the job may claim the delivery in its place. */
export function spent(reservation: Reservation | null): Reservation | null {
    return reservation && { ...reservation, beginBy: 0 };
}

/** How deliveries are handed out. */
export interface HandOutOptions {
    /** Maximum number of deliveries of one exporter that are in flight: `queued` or `sending`. Single attempts have as many places of their own. */
    readonly window: number;
    /** Consecutive failures that open an exporter's circuit breaker. Then, tests aside, only a probe passes: one due delivery at a set time. */
    readonly breakerAfter: number;
    /** Milliseconds within which an attempt must have begun under its reservation; without reservations when absent. */
    readonly beginWithin?: number;
}

/** An attempt that is under way under a {@link Reservation}. */
export interface BegunAttempt {
    readonly deliveryId: string;
    readonly token: string;
    /** When it began, in the store's time. */
    readonly claimedAt: Date;
    /** Milliseconds after which the claim runs out, from `claimedAt` on. */
    readonly duration: number;
}

/** What a session reports with each heartbeat: attempts under a {@link Reservation} that go on for longer than {@link RESERVATION_TIMES.reportedAfter}. */
export interface BegunAttempts {
    /**
     * Up to when the reports of the session are complete, in the store's time: every attempt that began at least
     * {@link RESERVATION_TIMES.reportedAfter} before this, and that still goes on, is in this report or in an earlier one. Null as long as the store
     * has not said its time.
     */
    readonly upTo: Date | null;
    /** Those that were in no report before. The store turns their reservations into claims of the session. */
    readonly attempts: readonly BegunAttempt[];
}

/** Times of reservations, in milliseconds. */
export const RESERVATION_TIMES = {
    /** Within which an attempt must have begun after its hand-out. So no exporter is sent to with settings that were replaced longer ago than that. */
    beginWithin: 1_000,
    /** An attempt that goes on for longer is reported, so that the store knows that it has begun. */
    reportedAfter: 500,
    /** For how long this process reckons the store's time from what the store told last. After that it begins nothing under a reservation. */
    timeTrustedFor: 10_000,
} as const;

/** What a process knows of the reservations that were handed out to it. */
export interface Reservations {
    /**
     * Notes what time it is by the store.
     *
     * @param asked This process's own, monotonic time at which it was asked.
     */
    heard(time: Date, asked: number): void;
    /** Whether an attempt under the reservation may begin now: even the latest time that the store may have is before `beginBy`. */
    inTime(reservation: Reservation): boolean;
    /** The store's time, as far as is known; null when the store has not told it for too long. */
    now(): Date | null;
    /** Whether an attempt under this reservation is under way. */
    hasBegun(reservation: Reservation): boolean;
    /** An attempt begins under a reservation. */
    begin(attempt: Omit<BegunAttempt, 'duration'>): void;
    /** The outcome of the attempt has been recorded. */
    end(token: string): void;
    /** Milliseconds until an attempt that is under way has to be reported; null when none has to be. */
    nextReport(): number | null;
    /** What is to be reported to the store. */
    report(): BegunAttempts;
    /** The store has got this report. */
    reported(report: BegunAttempts): void;
}

interface Begun {
    readonly attempt: BegunAttempt;
    readonly at: number;
    reported: boolean;
}

/**
 * The reservations that were handed out to a process. Their times are the store's. This process reckons the store's time from what it heard last,
 * and from how much of its own time has passed since.
 */
export function reservationsOf({
    monotonic,
    claimDuration,
    slept = monotonic === machineClock.now ? machineClock.slept : () => 0,
}: {
    readonly monotonic: () => number;
    readonly claimDuration: number;
    /** Milliseconds for which the machine has been suspended, as far as is known, and `monotonic` has gone on. */
    readonly slept?: () => number;
}): Reservations {
    const begun = new Map<string, Begun>();
    let last: { readonly time: number; readonly asked: number; readonly answered: number; readonly slept: number } | null = null;

    /** The latest time that the store may have now: it may have told its time as soon as it was `asked`. */
    function latest(): number | null {
        const now = monotonic();
        return last === null || now - last.answered > RESERVATION_TIMES.timeTrustedFor ? null : last.time + (now - last.asked);
    }

    return {
        heard(time, asked) {
            last = { time: time.getTime(), asked, answered: monotonic(), slept: slept() };
        },

        inTime({ beginBy }) {
            const now = latest();
            // A reservation whose end is too far away was made before the store's clock was set back.
            return now !== null && now < beginBy && beginBy <= now + 2 * RESERVATION_TIMES.beginWithin;
        },

        now() {
            const now = latest();
            return now === null ? null : new Date(Math.floor(now));
        },

        hasBegun: ({ token }) => begun.has(token),

        begin({ deliveryId, token, claimedAt }) {
            begun.set(token, { attempt: { deliveryId, token, claimedAt, duration: claimDuration }, at: monotonic(), reported: false });
        },

        end(token) {
            begun.delete(token);
        },

        nextReport() {
            for (const { at, reported } of begun.values()) {
                if (!reported) {
                    return Math.max(0, at + RESERVATION_TIMES.reportedAfter - monotonic());
                }
            }
            return null;
        },

        report() {
            const now = monotonic();
            const attempts = [...begun.values()].filter(({ at, reported }) => !reported && now - at >= RESERVATION_TIMES.reportedAfter);
            // The earliest time that the store may have now: it may have told its time only when the answer came, and may have slept with this machine.
            const upTo = last === null ? null : new Date(Math.floor(last.time + (now - last.answered) - (slept() - last.slept)));
            return { upTo, attempts: attempts.map(({ attempt }) => attempt) };
        },

        reported({ attempts }) {
            for (const { token } of attempts) {
                const attempt = begun.get(token);
                if (attempt !== undefined) {
                    attempt.reported = true;
                }
            }
        },
    };
}
