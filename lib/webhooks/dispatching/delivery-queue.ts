import { ScanwireError } from '../../errors.ts';
import type { Reservation } from './reservations.ts';

/**
 * A job: it tells the workers of a collector to send one delivery. A queue server may keep several jobs in one entry. Holds ids only: whoever can
 * read the queue learns nothing else.
 */
export interface DeliveryJob {
    readonly collector: string;
    readonly deliveryId: string;
    /** The exporter of the delivery; absent in jobs that an earlier release has added. */
    readonly exporterId?: string;
    /** Number of the attempt this job is for, from 1. With the delivery's id, and the token of its claim if it has one, it identifies the job. */
    readonly attempt: number;
    /** True for a `test`: its job is done before all that wait. */
    readonly singleAttempt: boolean;
    /**
     * The reservation that the delivery was handed out with, for whoever gets the job first. Null when there is none, and where the job may have
     * been handed out before: it was added once more, taken from a worker that died, or taken after the connection was lost.
     */
    readonly reservation: Reservation | null;
    /** How many workers have had it before and left it when they stopped; absent for none. Their own jobs for it may not be done yet. */
    readonly left?: number;
}

/** A worker that takes jobs until it is closed. */
export interface QueueWorker {
    /** Takes no new job and waits for those that run. What it has taken and not begun it leaves: {@link WorkOptions.onLeft}. */
    close(): Promise<void>;
}

/** How a worker takes jobs. */
export interface WorkOptions {
    /** How many slots the worker has: how many jobs may run at once. A few tests may run beside them ({@link slotsFor}). */
    readonly concurrency: number;
    /** Receives what goes wrong with the queue itself (connection lost, job lost); the worker goes on by itself. */
    readonly onError?: (error: Error) => void;
    /** Told of a job that the worker had taken and has not begun when it is closed, so that it can be left to others. */
    readonly onLeft?: (job: DeliveryJob) => void;
}

/** How many tests may run when all slots are occupied. */
const SLOTS_OF_TESTS = 16;

/** How many slots a worker has for this job and all others. Tests have some of their own, so that they do not wait for deliveries that take long. */
export function slotsFor({ singleAttempt }: Pick<DeliveryJob, 'singleAttempt'>, concurrency: number): number {
    return singleAttempt ? concurrency + SLOTS_OF_TESTS : concurrency;
}

/** Where the jobs of a deployment are. */
export interface QueueAddress {
    /** What kind of server keeps them, for example `Redis`. */
    readonly queue: string;
    /** What the names of all keys begin with; absent where the server has none. */
    readonly prefix?: string;
}

/**
 * Wakes workers up, and nothing more: the rows of the {@link DeliveryStore} are the truth. A queue may lose or repeat jobs at
 * any time; the dispatcher adds again what has gone missing and a worker's claim stops what comes twice.
 */
export interface DeliveryQueue {
    /** What keeps the jobs, for people: `Redis`, `this process`. */
    readonly name?: string;

    /**
     * Keeps the jobs of this deployment apart from those of others, and says where they are to be found; absent where no other process
     * can look for them. Called before anything else.
     *
     * @param deployment UUID of the deployment.
     */
    address?(deployment: string): QueueAddress;

    /** Resolves once the queue can be used. @throws ScanwireError `MISCONFIGURED` for a server that may drop jobs (a Redis that evicts keys), `UNAVAILABLE`. */
    ready(): Promise<void>;

    /**
     * Adds jobs; one that was added before and is not done stays as it is. A job with a reservation may be begun at once by a worker of this
     * process instead, without the server. So this may resolve although the server is away; `hasLostJobs` tells whether it is there.
     *
     * @throws ScanwireError `UNAVAILABLE` without waiting for a reconnect.
     */
    add(jobs: readonly DeliveryJob[]): Promise<void>;

    /**
     * Whether jobs may have been lost since this was asked last, or since the queue was first used. If so, all that is `queued` is added again.
     * Absent where that is not known. @throws ScanwireError `UNAVAILABLE`.
     */
    hasLostJobs?(): Promise<boolean>;

    /** Runs `handler` for the jobs of a collector, wherever they were added. A rejected handler is reported and its job dropped. */
    work(collector: string, handler: (job: DeliveryJob) => Promise<void>, options: WorkOptions): Promise<QueueWorker>;

    /** Ends the queue's own connections; what the application passed in stays open. Close the workers before. */
    close(): Promise<void>;
}

/** The first time that a process reaches its queue, whose server may still be away when the process starts. */
export interface FirstContact {
    /**
     * Calls `reached` once the queue can be used: before this resolves if its server is there, later if it is away.
     *
     * @throws ScanwireError `MISCONFIGURED` for a server that is there and would lose jobs or refuses the connection.
     */
    start(reached: () => void): Promise<void>;
    /** Stops trying. */
    stop(): void;
}

/** Milliseconds between the calls that try to reach a server that was away, doubled each time. */
export const RETRIES: { readonly first: number; readonly max: number } = { first: 500, max: 5_000 };

/**
 * Tries until the queue can be used. Every failure in the background is reported, and even a refusal is tried again, since whoever runs the
 * server may mend it.
 */
export function firstContact(queue: DeliveryQueue, onError: (error: Error) => void): FirstContact {
    let retry: NodeJS.Timeout | undefined;
    let wanted = false;

    async function tryAgain(reached: () => void, delay: number): Promise<void> {
        try {
            await queue.ready();
        } catch (error) {
            onError(error as Error);
            if (wanted) {
                tryLater(reached, Math.min(2 * delay, RETRIES.max));
            }
            return;
        }

        if (wanted) {
            reached();
        }
    }

    function tryLater(reached: () => void, delay: number): void {
        retry = setTimeout(() => void tryAgain(reached, delay), delay);
    }

    return {
        async start(reached) {
            wanted = true;
            try {
                await queue.ready();
            } catch (error) {
                if (!(error instanceof ScanwireError && error.code === 'UNAVAILABLE')) {
                    throw error;
                }

                onError(error);
                if (wanted) {
                    tryLater(reached, RETRIES.first);
                }
                return;
            }

            if (wanted) {
                reached();
            }
        },

        stop() {
            wanted = false;
            clearTimeout(retry);
        },
    };
}

/** What a queue that was closed rejects with. */
export function closedQueue(): ScanwireError {
    return new ScanwireError('UNAVAILABLE', 'The queue is closed');
}
