import {
    closedQueue,
    type DeliveryJob,
    type DeliveryQueue,
    type QueueWorker,
    slotsFor,
    type WorkOptions,
} from '../../lib/webhooks/dispatching/delivery-queue.ts';

/** The jobs of one collector. */
interface Lane {
    readonly waiting: DeliveryJob[];
    /** Keys of the jobs that wait or run: what has one is not added again. */
    readonly keys: Set<string>;
    /** Each takes what waits, as far as its worker has room. */
    readonly workers: Set<() => void>;
}

/** A queue within this process. Its jobs are gone with it, which loses nothing: the sweep adds them again. */
export function memoryQueue(): DeliveryQueue {
    const lanes = new Map<string, Lane>();
    let closed = false;
    let lost = true;

    function assertOpen(): void {
        if (closed) {
            throw closedQueue();
        }
    }

    function laneOf(collector: string): Lane {
        const lane = lanes.get(collector) ?? { waiting: [], keys: new Set(), workers: new Set() };
        lanes.set(collector, lane);
        return lane;
    }

    return {
        name: 'this process',

        async ready() {
            assertOpen();
        },

        async add(jobs) {
            assertOpen();
            for (const job of jobs) {
                const lane = laneOf(job.collector);
                if (!lane.keys.has(keyOf(job))) {
                    lane.keys.add(keyOf(job));
                    lane.waiting[job.singleAttempt ? 'unshift' : 'push']({ ...job });
                    wake(lane);
                }
            }
        },

        /** Those of a process before this one. */
        async hasLostJobs() {
            const answer = lost;
            lost = false;
            return answer;
        },

        async work(collector, handler, options) {
            assertOpen();
            return startWorker(laneOf(collector), handler, options);
        },

        async close() {
            closed = true;
            lanes.clear();
        },
    };
}

/** What was handed out with a claim and taken back comes once more, perhaps while its first job is not done. */
function keyOf({ deliveryId, attempt, reservation, left = 0 }: DeliveryJob): string {
    return `${deliveryId}/${attempt}/${reservation?.token ?? ''}/${left}`;
}

function wake(lane: Lane): void {
    for (const takeJobs of lane.workers) {
        takeJobs();
    }
}

function startWorker(lane: Lane, handler: Parameters<DeliveryQueue['work']>[1], { concurrency, onError }: WorkOptions): QueueWorker {
    const running = new Set<Promise<void>>();

    async function run(job: DeliveryJob): Promise<void> {
        try {
            await handler(job);
        } catch (error) {
            onError?.(error instanceof Error ? error : new Error('A job was rejected', { cause: error }));
        } finally {
            lane.keys.delete(keyOf(job));
        }
    }

    function takeJobs(): void {
        for (;;) {
            const [job] = lane.waiting;
            if (job === undefined || running.size >= slotsFor(job, concurrency)) {
                return;
            }

            lane.waiting.shift();
            // In a later microtask: a handler that adds jobs would come back here before its own job is counted.
            const one = Promise.resolve(job)
                .then(run)
                .finally(() => {
                    running.delete(one);
                    wake(lane);
                });
            running.add(one);
        }
    }

    lane.workers.add(takeJobs);
    takeJobs();
    return {
        async close() {
            lane.workers.delete(takeJobs);
            await Promise.all(running);
        },
    };
}
