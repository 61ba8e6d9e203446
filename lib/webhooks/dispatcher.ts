import type { WebhooksContext } from './options.ts';
import type { Dispatched } from './store.ts';

/**
 * Moves due deliveries from their rows into the queue, a window of each exporter at a time. Any number of dispatchers may
 * run on the same store.
 */
export interface Dispatcher {
    start(): void;
    /** Something became due or room became free: looks for it now. */
    wake(): void;
    /** Resolves once what is being handed out is in the queue. */
    stop(): Promise<void>;
}

/** How often rows are read when nobody wakes the dispatcher, in milliseconds. */
const POLL_EVERY = 1_000;

/** How often lost jobs and run-out claims are looked for, in milliseconds. */
const SWEEP_EVERY = 1_000;

/** After the store was away claims may look lost whose outcomes are just being recorded: so long they are left alone. Milliseconds. */
const GRACE = 5_000;

/** A delivery that has been queued for so long, in milliseconds, is added to the queue once more. */
const REQUEUE_AFTER = 10_000;

/** Deliveries moved per statement. */
const BATCH = 500;

/** A dispatcher that is stopped. What fails is reported and tried again at the next poll. */
export function dispatcher({
    deliveries,
    queue,
    monotonic,
    window,
    breakerAfter,
    onError,
}: Pick<WebhooksContext, 'deliveries' | 'queue' | 'monotonic' | 'window' | 'breakerAfter' | 'onError'>): Dispatcher {
    let running: Promise<void> | null = null;
    let woken = false;
    let stopped = true;
    let poll: NodeJS.Timeout | undefined;
    let nextSweep = Number.NEGATIVE_INFINITY;
    /** Marked queued in their rows, not yet in the queue. */
    let unqueued: readonly Dispatched[] = [];

    async function dispatch(): Promise<void> {
        let batch: readonly Dispatched[];
        do {
            batch = await deliveries.dispatch({ window, breakerAfter, limit: BATCH });
            await enqueue(batch);
        } while (batch.length === BATCH);
    }

    async function sweep(): Promise<void> {
        if (monotonic() >= nextSweep) {
            nextSweep = monotonic() + SWEEP_EVERY;
            await enqueue(await deliveries.sweep({ requeueAfter: REQUEUE_AFTER, limit: BATCH }));
        }
    }

    async function enqueue(batch: readonly Dispatched[]): Promise<void> {
        unqueued = [...unqueued, ...batch];
        if (unqueued.length > 0) {
            await queue.add(unqueued);
            unqueued = [];
        }
    }

    async function handOut(): Promise<void> {
        do {
            woken = false;
            try {
                await enqueue([]);
                await sweep();
                await dispatch();
            } catch (error) {
                nextSweep = monotonic() + GRACE;
                onError(error as Error);
            }
        } while (woken && !stopped);
    }

    function wake(): void {
        woken = true;
        if (stopped || running !== null) {
            return;
        }

        running = handOut().finally(() => {
            running = null;
            if (woken) {
                wake();
            }
        });
    }

    return {
        wake,

        start() {
            stopped = false;
            poll = setInterval(wake, POLL_EVERY);
            wake();
        },

        async stop() {
            stopped = true;
            clearInterval(poll);
            await running;
        },
    };
}
