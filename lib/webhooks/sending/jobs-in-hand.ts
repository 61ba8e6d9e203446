import { type DeliveryJob, placesFor } from '../dispatching/delivery-queue.ts';

/**
 * Limits beyond which a process leaves the deliveries that it hands out to other workers: this part of its places, and this number of deliveries
 * that are not slow.
 */
const OWN = { part: 3 / 4, quick: 64 };
/** Milliseconds after which a delivery counts as slow: it then waits for its receiver, and takes no CPU from others. */
const SLOW = 250;

/** The deliveries that a worker has, whether its own process handed them out or they came through the queue. */
export interface JobsInHand {
    /**
     * Begins, without the queue, a delivery that this process hands out with a reservation: that is for whoever gets it first, and nobody else
     * has it yet. False where it has none, and where so many deliveries go on here that it is better left to a worker with room.
     */
    takes(job: DeliveryJob): boolean;
    /**
     * Begins the deliveries of one entry of the queue. Resolves when the entry may be marked as done. Deliveries with a reservation need only
     * have begun, so that a slow one does not keep others from their places. Any other delivery stays in the queue until it has ended, so that it
     * is handed out again if this process dies.
     */
    begin(handedOut: readonly DeliveryJob[]): Promise<void>;
    /** Whether further deliveries may be fetched from the queue: not while some that are here wait for others to end. */
    mayFetch(): boolean;
    /** Whether a test may be fetched even when nothing else may: while one of the places for tests is free. */
    mayFetchTest(): boolean;
    /** Leaves what has not begun to others. Resolves when the rest has ended. */
    close(): Promise<void>;
}

/** One that waits to begin. */
interface Waiting {
    readonly job: DeliveryJob;
    begin(): void;
}

/** A delivery with a reservation begins when fewer than `concurrency` go on. A test begins even when a few more do. */
export function jobsInHand(handler: (job: DeliveryJob) => Promise<void>, concurrency: number, report: (error: Error) => void): JobsInHand {
    /** The deliveries that go on, with the times when they began, oldest first. */
    const running = new Map<Promise<void>, number>();
    const waiting: Waiting[] = [];
    let closed = false;

    function hasPlace(job: Pick<DeliveryJob, 'singleAttempt'>): boolean {
        return running.size < placesFor(job, concurrency);
    }

    async function serve(job: DeliveryJob): Promise<void> {
        // Counted first: a handler may add jobs.
        await null;
        try {
            await handler(job);
        } catch (error) {
            report(error instanceof Error ? error : new Error(String(error)));
        }
    }

    function begin(job: DeliveryJob): Promise<void> {
        const served = serve(job).finally(() => {
            running.delete(served);
            const [next] = waiting;
            if (next !== undefined && hasPlace(next.job)) {
                waiting.shift();
                next.begin();
            }
        });
        running.set(served, performance.now());
        return served;
    }

    function quick(): number {
        const since = performance.now() - SLOW;
        let slow = 0;
        for (const begunAt of running.values()) {
            if (begunAt > since) {
                break;
            }
            slow += 1;
        }
        return running.size - slow;
    }

    async function beginOnceFree(job: DeliveryJob): Promise<void> {
        if (!hasPlace(job)) {
            await new Promise<void>((resolve) => waiting[job.singleAttempt ? 'unshift' : 'push']({ job, begin: resolve }));
        }
        if (!closed) {
            void begin(job);
        }
    }

    return {
        takes(job) {
            const hasRoom = job.singleAttempt ? hasPlace(job) : running.size < Math.ceil(concurrency * OWN.part) && quick() < OWN.quick;
            const taken = !closed && hasRoom && job.reservation !== null;
            if (taken) {
                void begin(job);
            }
            return taken;
        },

        async begin(handedOut) {
            await Promise.all(handedOut.map((one) => (one.reservation === null ? begin(one) : beginOnceFree(one))));
        },

        mayFetch: () => waiting.length === 0,

        mayFetchTest: () => hasPlace({ singleAttempt: true }),

        async close() {
            closed = true;
            for (const one of waiting.splice(0)) {
                one.begin();
            }
            while (running.size > 0) {
                await Promise.allSettled(running.keys());
            }
        },
    };
}
