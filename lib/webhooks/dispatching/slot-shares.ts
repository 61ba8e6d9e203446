import type { RecordedOutcome } from '../deliveries/delivery-store.ts';

/**
 * How the slots of a collector (the attempts that its workers can make at once) are shared, so that one exporter's slow receiver holds up
 * no other exporter. Times in milliseconds.
 */
export const SHARES = {
    /** Slots of a collector none of whose workers is known. */
    defaultSlots: 400,
    /** An exporter is slow from when one of its attempts takes longer than this, even before that attempt has ended. */
    slowAfter: 1_000,
    /** An exporter is quick again from when an attempt delivers within this time. A new one counts as slow until then. */
    quickWithin: 500,
} as const;

/** Whether an outcome is a success within {@link SHARES.quickWithin}: it changes nothing for an exporter that fares well. */
export function isQuickSuccess({ next, health, outcome, pause, stopReason }: RecordedOutcome): boolean {
    const isQuick = outcome.timings.total <= SHARES.quickWithin;
    return isQuick && next.state === 'delivered' && health === 'success' && pause === null && stopReason === null;
}

/** An exporter of a collector, the pool of workers whose slots it shares with others: one that has deliveries that are due or in flight. */
export interface Sharer {
    readonly slow: boolean;
    readonly inFlight: number;
    /** How many it may have in flight now, were it alone: its window; 1 or 0 while its breaker is open, 0 while it is paused. */
    readonly window: number;
}

/** What the slow or the quick exporters of a collector may have in flight. */
export interface ShareGroup {
    /** Share of each of them. */
    readonly share: number;
    /** How many more all of them together may have in flight than now. */
    readonly room: number;
}

/**
 * Slow exporters together may have as many deliveries in flight as half of the slots, at least one; where there are more slow exporters than that,
 * they get slots one after another. Quick exporters together may have twice as many as there are slots, less what the slow ones have. So while one set
 * of deliveries is being sent, another waits in the queue, for at most about {@link SHARES.quickWithin}, and workers never wait for the dispatcher.
 */
export function shareGroupsOf(sharers: readonly Sharer[], slots: number): { readonly slow: ShareGroup; readonly quick: ShareGroup } {
    const slow = sharers.filter((one) => one.slow);
    const quick = sharers.filter((one) => !one.slow);
    return { slow: shareGroup(slow, Math.max(1, Math.floor(slots / 2))), quick: shareGroup(quick, 2 * slots - inFlight(slow)) };
}

function shareGroup(sharers: readonly Sharer[], capacity: number): ShareGroup {
    const active = sharers.filter((one) => one.window > 0 || one.inFlight > 0).length;
    return { share: Math.max(1, Math.floor(capacity / Math.max(1, active))), room: capacity - inFlight(sharers) };
}

function inFlight(sharers: readonly Sharer[]): number {
    return sharers.reduce((sum, one) => sum + one.inFlight, 0);
}

/**
 * How many places dispatch keeps for retries, even while there are first tries: an eighth of a window, and where there is a rate of the deployment,
 * also of what it lets be handed out now, of all exporters together.
 *
 * @param rest What is added where an eighth is no whole number, 0 to 7: {@link restAt}, or, with such a rate, one by lot.
 */
export function placesKeptByDispatch(places: number, rest: number): number {
    return Math.floor((places + rest) / 8);
}

/**
 * So the rest is made up over time: a window of one place keeps it for retries for an eighth of the time. No round time is in step with this: who gets a turn
 * every 800 ms would meet the same part again and again, and keep the place always or never.
 */
export function restAt(now: Date): number {
    return Math.floor(now.getTime() / 109) % 8;
}

/** How many places of a window `accept` keeps free while retries are due, so that new events never keep all of them waiting. */
export function placesKeptByAcceptance(window: number): number {
    return Math.ceil(window / 8);
}
