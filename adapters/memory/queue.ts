import { ScanwireError } from '../../lib/errors.ts';
import type { DeliveryJob, DeliveryQueue, QueueWorker, WorkOptions } from '../../lib/webhooks/queue.ts';

type Handler = (job: DeliveryJob) => Promise<void>;

/** The jobs of one collector. `there` holds the keys of those that wait and of those in hand. */
interface Lane {
    readonly waiting: DeliveryJob[];
    readonly there: Set<string>;
    readonly workers: Set<() => void>;
}

/** A queue within this process. Its jobs are gone with it, which loses nothing: the sweep adds them again. */
export function memoryQueue(): DeliveryQueue {
    const lanes = new Map<string, Lane>();
    const laneOf = (collector: string): Lane => {
        const lane = lanes.get(collector) ?? { waiting: [], there: new Set(), workers: new Set() };
        lanes.set(collector, lane);
        return lane;
    };
    let open = true;
    const demandOpen = (): void => {
        if (!open) {
            throw new ScanwireError('UNAVAILABLE', 'the queue is closed');
        }
    };

    return {
        async ready() {
            demandOpen();
        },

        async add(jobs) {
            demandOpen();
            for (const job of jobs) {
                enqueue(laneOf(job.collector), job);
            }
        },

        async work(collector, handler, options) {
            demandOpen();
            return startWorker(laneOf(collector), handler, options);
        },

        async close() {
            open = false;
            lanes.clear();
        },
    };
}

function keyOf({ deliveryId, attempt }: DeliveryJob): string {
    return `${deliveryId}/${attempt}`;
}

function enqueue(lane: Lane, job: DeliveryJob): void {
    if (lane.there.has(keyOf(job))) {
        return;
    }

    lane.there.add(keyOf(job));
    lane.waiting.push({ ...job });
    wake(lane);
}

function wake(lane: Lane): void {
    for (const takeJobs of lane.workers) {
        takeJobs();
    }
}

function startWorker(lane: Lane, handler: Handler, { concurrency, onError }: WorkOptions): QueueWorker {
    const inHand = new Set<Promise<void>>();

    const run = async (job: DeliveryJob): Promise<void> => {
        try {
            await handler(job);
        } catch (error) {
            onError?.(error instanceof Error ? error : new Error('a job was rejected', { cause: error }));
        } finally {
            lane.there.delete(keyOf(job));
        }
    };
    const takeJobs = (): void => {
        while (inHand.size < concurrency) {
            const job = lane.waiting.shift();
            if (job === undefined) {
                return;
            }
            // Not at once: a handler that adds jobs would come back here before its own job is counted.
            const running = Promise.resolve(job)
                .then(run)
                .finally(() => {
                    inHand.delete(running);
                    wake(lane);
                });
            inHand.add(running);
        }
    };

    lane.workers.add(takeJobs);
    takeJobs();
    return {
        async close() {
            lane.workers.delete(takeJobs);
            await Promise.all(inHand);
        },
    };
}
