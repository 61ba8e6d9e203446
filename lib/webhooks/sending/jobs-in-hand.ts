import { type DeliveryJob, slotsFor } from '../dispatching/delivery-queue.ts';

/**
 * A process begins deliveries that it has handed out itself directly, without the queue, only up to these limits: while fewer than this part of its
 * slots are occupied, and fewer than this number of deliveries began recently. Beyond them it leaves its deliveries to the queue, for other workers.
 */
const DIRECT = { part: 3 / 4, recent: 64 };
/** For how many milliseconds a delivery counts as recent. After that it most likely waits for its receiver, and takes no CPU from others. */
const RECENT_FOR = 250;

/** The deliveries that a worker has, whether its own process handed them out or they came through the queue. */
export interface JobsInHand {
    /**
     * Begins, without the queue, a delivery that this process hands out with a reservation. It may do so since a reservation is for whoever gets
     * the job first, and no other worker has this one yet. False where it has no reservation, and where so many deliveries go on here that it is
     * better left to a worker with free slots.
     */
    takes(job: DeliveryJob): boolean;
    /**
     * Begins the deliveries of one entry of the queue. Resolves when the entry may be marked as done. Deliveries with a reservation need only
     * have begun, so that a slow one does not hold up the entries behind this one. Any other delivery stays in the queue until it has ended, so that it
     * is handed out again if this process dies.
     */
    begin(handedOut: readonly DeliveryJob[]): Promise<void>;
    /** Whether further deliveries may be fetched from the queue: not while some that are here wait for others to end. */
    mayFetch(): boolean;
    /** Whether a test may be fetched even when nothing else may: while one of the slots for tests is free. */
    mayFetchTest(): boolean;
    /** Leaves what has not begun. Resolves when the rest has ended. */
    close(): Promise<void>;
}

/** One that waits to begin. */
interface Waiting {
    readonly job: DeliveryJob;
    begin(): void;
}

/** A delivery with a reservation begins when fewer than `concurrency` go on. A test begins even when a few more do. */
export function jobsInHand(
    handler: (job: DeliveryJob) => Promise<void>,
    concurrency: number,
    { report, leave }: { report(error: Error): void; leave(job: DeliveryJob): void },
): JobsInHand {
    /** The deliveries that go on, with the times when they began, oldest first. */
    const running = new Map<Promise<void>, number>();
    const waiting: Waiting[] = [];
    let closed = false;

    function hasSlot(job: Pick<DeliveryJob, 'singleAttempt'>): boolean {
        return running.size < slotsFor(job, concurrency);
    }

    async function serve(job: DeliveryJob): Promise<void> {
        // The job is counted as running before its handler runs, since the handler may add jobs, for which free slots are counted.
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
            if (next !== undefined && hasSlot(next.job)) {
                waiting.shift();
                next.begin();
            }
        });
        running.set(served, performance.now());
        return served;
    }

    function recent(): number {
        const since = performance.now() - RECENT_FOR;
        let older = 0;
        for (const begunAt of running.values()) {
            if (begunAt > since) {
                break;
            }
            older += 1;
        }
        return running.size - older;
    }

    async function beginOnceFree(job: DeliveryJob): Promise<void> {
        if (!closed && !hasSlot(job)) {
            await new Promise<void>((resolve) => waiting[job.singleAttempt ? 'unshift' : 'push']({ job, begin: resolve }));
        }
        if (closed) {
            leave(job);
        } else {
            void begin(job);
        }
    }

    return {
        takes(job) {
            const fits = job.singleAttempt ? hasSlot(job) : running.size < Math.ceil(concurrency * DIRECT.part) && recent() < DIRECT.recent;
            const begins = !closed && fits && job.reservation !== null;
            if (begins) {
                void begin(job);
            }
            return begins;
        },

        async begin(handedOut) {
            await Promise.all(handedOut.map((one) => (one.reservation === null ? begin(one) : beginOnceFree(one))));
        },

        mayFetch: () => waiting.length === 0,

        mayFetchTest: () => hasSlot({ singleAttempt: true }),

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
