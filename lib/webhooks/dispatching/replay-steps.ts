import type { Dispatched } from '../deliveries/delivery-store.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import type { Turns } from './turns.ts';

/**
 * Milliseconds between two steps of replays: the first two, which have as much to spread; at least; at most while their deliveries are handed out; at
 * most while none are; and while no replay is known. A step costs as much whether it has one delivery or twenty.
 */
const STEP_EVERY = { first: 100, min: 25, max: 200, unused: 500, unknown: 10_000 } as const;

/** Deliveries that a step should have; steps become rarer or more frequent until it has. */
const OF_A_STEP = { min: 12, max: 24 } as const;

/** Milliseconds by which a timer may end before its time: a hand-out that finds no step due yet costs as much as one that does. */
const EARLY = 2;

/** The most deliveries of one replay that a step makes due. */
const MAX_OF_A_STEP = 1_000;

/** What was handed out after a step. */
export interface AfterStep {
    /** How many were added to the queue. */
    readonly atOnce: number;
    /** Those that are to be added one after the other until the next step. */
    readonly inTurns: readonly Dispatched[];
}

/** Lets replays go on, step by step, when it is time. */
export function replaySteps(
    { deliveries: { replays }, monotonic }: Pick<WebhooksContext, 'deliveries' | 'monotonic'>,
    addInTurns: Turns<Dispatched>['give'],
) {
    let next = Number.NEGATIVE_INFINITY;
    let isUnfinished = false;
    let pause: number = STEP_EVERY.first;
    return {
        now(): void {
            next = Number.NEGATIVE_INFINITY;
        },

        /** Whether any goes on, by the last step. */
        areUnfinished: (): boolean => isUnfinished,

        /** @returns Whether it was time, and any goes on. */
        async advance(): Promise<boolean> {
            if (replays === undefined || monotonic() < next - EARLY) {
                return false;
            }

            // Before it is asked: where that fails, what is due is dispatched all the same, and replays wait.
            next = monotonic() + STEP_EVERY.unknown;
            isUnfinished = false;
            isUnfinished = await replays.advance(MAX_OF_A_STEP);
            if (isUnfinished) {
                next = monotonic() + pause;
            } else {
                pause = STEP_EVERY.first;
            }
            return isUnfinished;
        },

        /** @returns After how many milliseconds; null when none is unfinished. */
        goOnAfter(advanced: boolean, { atOnce, inTurns }: AfterStep): number | null {
            if (!isUnfinished) {
                return null;
            }

            const untilNext = Math.max(0, next - monotonic());
            if (advanced) {
                pause = pauseAfter(pause, atOnce, inTurns.length);
                // So many are sent at less cost together.
                addInTurns(inTurns, inTurns.length > OF_A_STEP.max ? 0 : untilNext);
            }
            return untilNext;
        },
    };
}

/** What is sent at once slows down the new events of that moment, so that it should be little. */
function pauseAfter(pause: number, atOnce: number, inTurns: number): number {
    if (atOnce + inTurns === 0) {
        return Math.min(2 * pause, STEP_EVERY.unused);
    }
    if (atOnce > 0 || inTurns > OF_A_STEP.max) {
        return Math.max(Math.min(pause, STEP_EVERY.max) / 2, STEP_EVERY.min);
    }
    return Math.min(inTurns < OF_A_STEP.min ? 2 * pause : pause, STEP_EVERY.max);
}
