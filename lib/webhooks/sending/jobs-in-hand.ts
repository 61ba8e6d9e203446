import { type DeliveryJob, placesFor } from '../dispatching/delivery-queue.ts';

/** Beyond this part of its places, and beyond so many that are not slow, what a process hands out is shared with other workers. */
const OWN = { part: 3 / 4, quick: 64 };
/** What goes on for longer, in milliseconds, waits for its receiver and takes no CPU from those beside it. */
const SLOW = 250;

/** The deliveries that a worker of this process sends, those that its process handed out and those that came through the queue. */
export interface JobsInHand {
    /**
     * Begins a delivery that its own process hands out, without the queue, if it came with its claim: it is for whoever gets it first then, and
     * nobody else has got it. False where it has none, and where so many go on that it is better left to whoever has room.
     */
    takes(job: DeliveryJob): boolean;
    /**
     * Resolves when the entry of the queue that brought them, one for several deliveries, may be marked as done. For deliveries that came with
     * their claims, that is when all have begun: a slow one keeps no other from its place. Any other is the queue's until it has ended, so that it
     * is handed out again if this process dies.
     */
    begin(handedOut: readonly DeliveryJob[]): Promise<void>;
    /** While some deliveries wait for others to end, none are fetched beside those that are here. */
    mayFetch(): boolean;
    /** What has not begun is left to others. Resolves when the rest has ended. */
    close(): Promise<void>;
}

/** One that waits to begin. */
interface Waiting {
    readonly job: DeliveryJob;
    begin(): void;
}

/** What came with its claim begins when fewer than `concurrency` go on, and a test when few more do. */
export function jobsInHand(handler: (job: DeliveryJob) => Promise<void>, concurrency: number, report: (error: Error) => void): JobsInHand {
    /** With when they began, those that have gone on for longest first. */
    const running = new Map<Promise<void>, number>();
    const waiting: Waiting[] = [];
    let closed = false;

    function hasPlace(job: DeliveryJob): boolean {
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
