import type { HandedOut } from '../deliveries/delivery-store.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { AT_ONCE } from './outlook.ts';
import type { Turns } from './turns.ts';

/**
 * A step makes the next part of the deliveries of each unfinished replay due. Milliseconds between two steps. `first`: between the first two, which
 * have a tenth of a second's deliveries to spread. `min` and `max`: while deliveries are handed out. `unused`: at most, while
 * none are. `unknown`: while no replay is known. A step costs as much with one delivery as with twenty.
 */
const STEP_EVERY = { first: 100, min: 25, max: 200, unused: 500, unknown: 10_000 } as const;

/** How many deliveries a step should have. Steps become rarer or more frequent until they have so many. */
const OF_A_STEP = { min: 12, max: 24 } as const;

/**
 * Milliseconds by which a timer may end too early. A step that is due so soon is taken at once, since a hand-out costs as much whether it finds a
 * step due or not.
 */
const EARLY = 2;

/** The most deliveries of one replay that a step makes due. */
const MAX_OF_A_STEP = 1_000;

/** What was handed out after a step. */
export interface HandedOutAfterStep {
    /** How many were added to the queue. */
    readonly atOnce: number;
    /** Those that are to be added one after the other until the next step. */
    readonly inTurns: readonly HandedOut[];
}

/** Lets replays go on, step by step, when it is time. */
export function replaySteps(
    { deliveries: { replays }, lookout, monotonic }: Pick<WebhooksContext, 'deliveries' | 'lookout' | 'monotonic'>,
    addInTurns: Turns<HandedOut>['give'],
) {
    let next = AT_ONCE;
    let isUnfinished = false;
    let interval: number = STEP_EVERY.first;
    let lastStep: number | null = null;
    return {
        now(): void {
            next = AT_ONCE;
        },

        /** Whether any replay was unfinished after the last step. */
        areUnfinished: (): boolean => isUnfinished,

        /** Milliseconds in which to add what the last step of a replay has made due, if it was taken just now. */
        lastStep: (): number | null => lastStep,

        /** @returns Whether a step was due, and any replay is unfinished after it. */
        async advance(): Promise<boolean> {
            lastStep = null;
            const isRuledOut = !isUnfinished && next !== AT_ONCE && lookout.rulesOut('replays');
            if (replays === undefined || isRuledOut || monotonic() < next - EARLY) {
                return false;
            }

            // Set before the store is asked: where that fails, due deliveries are dispatched all the same, and replays wait.
            next = monotonic() + STEP_EVERY.unknown;
            const wasUnfinished = isUnfinished;
            isUnfinished = false;
            isUnfinished = await replays.advance(MAX_OF_A_STEP);
            if (isUnfinished) {
                next = monotonic() + interval;
            } else {
                lastStep = wasUnfinished ? interval : null;
                interval = STEP_EVERY.first;
            }
            return isUnfinished;
        },

        /** Adds what was handed out after a step to the queue until the next one. @returns Milliseconds until that; null when no replay is unfinished. */
        addUntilNextStep(advanced: boolean, { atOnce, inTurns }: HandedOutAfterStep): number | null {
            if (!isUnfinished) {
                return null;
            }

            const untilNext = Math.max(0, next - monotonic());
            if (advanced) {
                interval = intervalAfter(interval, atOnce, inTurns.length);
                // To add so many together costs less.
                addInTurns(inTurns, inTurns.length > OF_A_STEP.max ? 0 : untilNext);
            }
            return untilNext;
        },
    };
}

/** The next interval between two steps. Deliveries that are added at once slow down new events of the same moment, so that they should be few. */
function intervalAfter(interval: number, atOnce: number, inTurns: number): number {
    if (atOnce + inTurns === 0) {
        return Math.min(2 * interval, STEP_EVERY.unused);
    }
    if (atOnce > 0 || inTurns > OF_A_STEP.max) {
        return Math.max(Math.min(interval, STEP_EVERY.max) / 2, STEP_EVERY.min);
    }
    return Math.min(inTurns < OF_A_STEP.min ? 2 * interval : interval, STEP_EVERY.max);
}
