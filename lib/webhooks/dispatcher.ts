import type { Clock } from '../clock.ts';
import type { DeliveryQueue } from './queue.ts';
import type { DeliveryStore, Dispatched } from './store.ts';

export interface DispatcherOptions {
    /** At most so many deliveries of one exporter are in the queue or being sent. */
    readonly window: number;
    /** Consecutive failures from which on an exporter gets one probe at a time. */
    readonly breakerAfter: number;
    /** How often rows are looked at when nobody kicks, in milliseconds. */
    readonly pollEvery: number;
    /** How often lost jobs and run-out claims are looked for, in milliseconds. */
    readonly sweepEvery: number;
    /** A delivery that has been queued for so long, in milliseconds, is added to the queue once more. */
    readonly requeueAfter: number;
}

export interface DispatcherParts extends DispatcherOptions {
    readonly deliveries: DeliveryStore;
    readonly queue: DeliveryQueue;
    readonly clock: Clock;
    /** Told of every store or queue failure; the dispatcher tries again at its next look. */
    readonly onError: (error: Error) => void;
}

/**
 * Moves due deliveries from their rows into the queue, a window of each exporter at a time. Any number of dispatchers may
 * run on the same store.
 */
export interface Dispatcher {
    start(): void;
    /** Something became due or room became free: look now. */
    kick(): void;
    /** One look: everything that is due and has room. Resolves with how many were handed to the queue. */
    dispatch(): Promise<number>;
    /** Finds what queue and workers have lost and hands it out again. */
    sweep(): Promise<void>;
    /** Resolves once the look under way has ended. */
    stop(): Promise<void>;
}

/** Deliveries handed out per statement. */
const BATCH = 500;

export function dispatcher(parts: DispatcherParts): Dispatcher {
    const { deliveries, queue, clock, window, breakerAfter, pollEvery, sweepEvery, requeueAfter, onError } = parts;
    let running: Promise<void> | null = null;
    let kicked = false;
    let stopped = true;
    let poll: NodeJS.Timeout | undefined;
    let lastSweep = Number.NEGATIVE_INFINITY;
    /** Marked queued in their rows, not yet taken by the queue. */
    let owed: readonly Dispatched[] = [];

    async function dispatch(): Promise<number> {
        let handedOut = 0;
        for (;;) {
            const batch = await deliveries.dispatch({ now: clock(), window, breakerAfter, limit: BATCH });
            await enqueue(batch);
            handedOut += batch.length;
            if (batch.length < BATCH) {
                return handedOut;
            }
        }
    }

    async function sweep(): Promise<void> {
        const now = clock();
        const { requeue } = await deliveries.sweep({ now, queuedBefore: new Date(now.getTime() - requeueAfter), limit: BATCH });
        await enqueue(requeue);
    }

    async function enqueue(batch: readonly Dispatched[]): Promise<void> {
        owed = [...owed, ...batch];
        if (owed.length > 0) {
            await queue.add(owed);
            owed = [];
        }
    }

    async function look(): Promise<void> {
        do {
            kicked = false;
            try {
                await enqueue([]);
                if (clock().getTime() - lastSweep >= sweepEvery) {
                    lastSweep = clock().getTime();
                    await sweep();
                }

                await dispatch();
            } catch (error) {
                onError(error as Error);
            }
        } while (kicked && !stopped);
    }

    function kick(): void {
        kicked = true;
        if (stopped || running !== null) {
            return;
        }

        running = look().finally(() => {
            running = null;
            if (kicked) {
                kick();
            }
        });
    }

    return {
        dispatch,
        sweep,
        kick,

        start() {
            stopped = false;
            poll = setInterval(kick, pollEvery);
            kick();
        },

        async stop() {
            stopped = true;
            clearInterval(poll);
            await running;
        },
    };
}
