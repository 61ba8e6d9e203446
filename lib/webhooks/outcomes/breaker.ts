/** When an exporter that fails is left alone, how it is tried again, and when it is given up. Times in milliseconds. */
export interface BreakerRules {
    /**
     * Consecutive failures from which on its breaker is open: one probe at a time. Of failures that overlap only one counts, so that 400 attempts
     * that fail together count once: a failure is not counted when its attempt began before the last counted failure was recorded or, once the
     * breaker is open, before the probe that was last scheduled became due.
     */
    readonly after: number;
    /** Until the first probe; doubled for each further one that fails, up to the maximum. */
    readonly firstProbe: number;
    readonly maxProbe: number;
    /** An exporter is stopped that has failed, or whose receiver has wanted to be left alone, for so long without a 2xx in between. */
    readonly stopAfter: number;
    /**
     * The window that an exporter gets back in its slow start: after a successful probe each further success allows one more delivery in flight, so
     * that their number doubles whenever all of them have succeeded.
     */
    readonly window: number;
}

/** Milliseconds after which an open breaker is first probed. */
export const FIRST_PROBE: number = 5_000;
/** Longest time between two probes, in milliseconds. */
export const MAX_PROBE: number = 5 * 60_000;

/** Milliseconds until an exporter with this number of consecutive failures is probed; null while its breaker stays closed. */
export function probeDelay(failures: number, { after, firstProbe, maxProbe }: BreakerRules): number | null {
    return failures < after ? null : Math.min(maxProbe, firstProbe * 2 ** Math.min(failures - after, 30));
}

/** Why an exporter was stopped that has failed for longer than {@link BreakerRules.stopAfter}. */
export const STOPPED_FAILING = 'The receiver has taken nothing for too long';

/** What becomes of a delivery after faults, that is after attempts that ended as `interrupted`. Times in milliseconds. */
export const FAULTS = {
    /** Until the delivery is tried again after the first; doubled for each further one in a row, up to the maximum. */
    firstDelay: 1_000,
    maxDelay: 60_000,
    /**
     * How many of its claims in a row have to be lost, each by running out or by the end of its session, for a delivery to become `poisoned`: it then
     * seems to end the processes that send it. Any outcome that is recorded, also `interrupted`, begins the row anew.
     */
    poisonedAfter: 20,
} as const;

/** Milliseconds until a delivery is tried again after so many faults in a row. */
export function faultDelay(faults: number): number {
    return Math.min(FAULTS.maxDelay, FAULTS.firstDelay * 2 ** Math.min(faults - 1, 30));
}
