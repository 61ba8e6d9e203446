import type { BackendFactory, ConnectionOptions, IQueueBackend, Job } from 'bullmq';
import { ScanwireError } from '../../lib/errors.ts';
import type { DeliveryJob, QueueAddress, QueueWorker, WorkOptions } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import type { Reservation } from '../../lib/webhooks/dispatching/reservations.ts';
import { COLLECTOR_PATTERN } from '../../lib/webhooks/exporters/exporter.ts';
import { type JobsInHand, jobsInHand } from '../../lib/webhooks/sending/jobs-in-hand.ts';
import { within } from '../../lib/within.ts';
import { JobWorker } from './job-worker.ts';

/**
 * BullMQ renews a lock at half its time for as long as the process lives. It is the claim in the rows that keeps an attempt from
 * being made twice; a short lock finds sooner what a dead process held.
 */
const LOCK_DURATION = 10_000;
const STALLED_INTERVAL = 5_000;
/** How often a job may lose its process; our rows count attempts, BullMQ must not give up before them. */
const MAX_STALLED = 1_000;
const RETRY_DELAY = 1_000;
/** BullMQ repeats a failing fetch without a pause; so many errors within a {@link RETRY_DELAY} earn one. */
const ERRORS_BEFORE_PAUSE = 10;
const CLOSE_TIMEOUT = 5_000;

/** A worker that also takes what is handed out by its own process. */
export interface BullmqWorker extends QueueWorker, Pick<JobsInHand, 'takes'> {}

/** Serves one queue until it is closed, whatever happens to the server meanwhile. */
export async function bullmqWorker(
    server: BullmqServer,
    collector: string,
    handler: (job: DeliveryJob) => Promise<void>,
    { concurrency, onError: report = () => {}, onLeft: leave = () => {} }: WorkOptions,
): Promise<BullmqWorker> {
    const name = queueName(collector);
    let closing: Promise<void> | undefined;
    let retry: NodeJS.Timeout | undefined;
    const connection = await server.worker();
    const inHand = jobsInHand(handler, concurrency, { report, leave });
    let worker = start();

    function start(): JobWorker {
        const started = new JobWorker(
            name,
            run,
            {
                connection: connection.connection,
                ...(connection.prefix === undefined ? {} : { prefix: connection.prefix }),
                concurrency,
                lockDuration: LOCK_DURATION,
                stalledInterval: STALLED_INTERVAL,
                maxStalledCount: MAX_STALLED,
                runRetryDelay: RETRY_DELAY,
            },
            server.backend,
        );
        started.hands = inHand;
        started.firstWaiting = () => server.firstWaiting(name, started.backend);
        started.limitFetching();
        started.on(
            'error',
            pausingOnFlood(started, (error) => report(server.refusal?.(error) ?? error)),
        );
        started.waitUntilReady().catch(() => restart(started));
        return started;
    }

    /** A worker whose first connection failed never recovers by itself. */
    function restart(failed: JobWorker): void {
        void failed.close(true).catch(report);
        if (closing === undefined) {
            retry = setTimeout(() => {
                worker = start();
            }, RETRY_DELAY);
        }
    }

    async function run(job: Job): Promise<void> {
        try {
            const begun = inHand.begin(jobsIn(collector, job, connection.isSteady()));
            worker.limitFetching();
            await begun;
        } catch (error) {
            report(error instanceof Error ? error : new Error(String(error)));
        }
    }

    async function close(): Promise<void> {
        clearTimeout(retry);
        connection.stopWaiting();
        const ended = inHand.close();
        const closed = worker.close();
        await ended;

        const late = (): Error => new Error(`Worker of queue ${name} did not close in time`);
        await within(closed, { timeout: CLOSE_TIMEOUT, late }).catch(report);
        // One without a claim may have come meanwhile.
        await inHand.close();
        connection.release();
    }

    return {
        takes: inHand.takes,

        close() {
            closing ??= close();
            return closing;
        },
    };
}

/** Reports errors, and lets the worker rest when they come in a flood: what repeats at once is not reported then. */
function pausingOnFlood(worker: JobWorker, report: (error: Error) => void): (error: Error) => void {
    let since = Number.NEGATIVE_INFINITY;
    let count = 0;
    return (error) => {
        const now = performance.now();
        if (now - since > RETRY_DELAY) {
            since = now;
            count = 0;
        }

        count += 1;
        if (count < ERRORS_BEFORE_PAUSE) {
            report(withoutIds(error));
        } else if (count === ERRORS_BEFORE_PAUSE) {
            void worker.pause(true).catch(report);
            setTimeout(() => void worker.resume().catch(report), RETRY_DELAY).unref();
        }
    };
}

const JOB_IDS = /(?:bundle-|test-)?[0-9a-f-]{36,}/g;

/** What BullMQ says of each job alike, as of those that a server has lost with all else, is one error, and a log says it once. */
function withoutIds(cause: Error): Error {
    const message = cause.message.replaceAll(JOB_IDS, '…');
    if (message === cause.message) {
        return cause;
    }
    // Whoever is told decides by class and code.
    const shown = Object.setPrototypeOf(new Error(message, { cause }), Object.getPrototypeOf(cause)) as Error;
    return Object.assign(shown, { name: cause.name }, 'code' in cause && { code: cause.code });
}

/** The name of a collector's queue. @throws ScanwireError `INVALID_INPUT`. */
export function queueName(collector: string): string {
    if (!COLLECTOR_PATTERN.test(collector)) {
        throw new ScanwireError('INVALID_INPUT', 'collector must be 1 to 64 letters, digits, - or _', { field: 'collector' });
    }

    return `scanwire-${collector}`;
}

/** @param steady Whether nobody else can have got the job when this is the first time that it was started. */
function jobsIn(collector: string, { data, attemptsStarted, stalledCounter }: Job, steady: boolean): readonly DeliveryJob[] {
    const first = steady && attemptsStarted === 1 && stalledCounter === 0;
    const { deliveries } = (data ?? {}) as Record<string, unknown>;
    return (Array.isArray(deliveries) ? deliveries : [data]).map((one) => deliveryJob(collector, one, first));
}

function deliveryJob(collector: string, data: unknown, first: boolean): DeliveryJob {
    const { deliveryId, exporterId, attempt, singleAttempt, grant: reservation, left } = (data ?? {}) as Record<string, unknown>;
    if (typeof deliveryId !== 'string' || typeof attempt !== 'number') {
        throw new ScanwireError('INVALID_INPUT', `Job of collector ${collector} without its ids: does the server evict keys?`);
    }

    return {
        collector,
        deliveryId,
        ...(typeof exporterId === 'string' && { exporterId }),
        attempt,
        singleAttempt: singleAttempt === true,
        reservation: first ? reservationIn(reservation) : null,
        ...(typeof left === 'number' && { left }),
    };
}

/** What does not look like a claim is none: the server is not ours alone. */
function reservationIn(value: unknown): Reservation | null {
    const reservation = (value ?? {}) as Record<keyof Reservation, unknown>;
    const { token, beginBy, generation, attemptSinceReplay, settings } = reservation;
    const numbers = [beginBy, generation, attemptSinceReplay, settings];
    const isReservation = typeof token === 'string' && numbers.every(Number.isFinite);
    return isReservation ? (reservation as Reservation) : null;
}

/** What BullMQ's constructors need to reach the server. */
export interface BullmqConnection {
    readonly connection: ConnectionOptions;
    /** Redis only: what the names of all keys begin with. */
    readonly prefix?: string;
}

/** The connection of one worker. */
export interface BullmqWorkerConnection extends BullmqConnection {
    /** Whether the connection was not lost for long enough: a server that took over may hand out what the one before has handed out. */
    isSteady(): boolean;
    /** Called before the worker closes: from now on a server that is away is not waited for. */
    stopWaiting(): void;
    /** Called after the worker has closed. */
    release(): void;
}

/** The server that BullMQ keeps its jobs on. */
export interface BullmqServer {
    /** For messages, for example `Redis`. */
    readonly name: string;
    readonly backend: BackendFactory;
    /** As `DeliveryQueue.address`. */
    address(deployment: string): QueueAddress;
    /** @throws ScanwireError `MISCONFIGURED`, `UNAVAILABLE`. */
    ready(): Promise<void>;
    /** Of so few jobs for one queue, adding each by itself is quicker. */
    readonly few: number;
    /** What is sent before this turn of the event loop ends leaves together; absent where that gains nothing. */
    gatherWrites?(): void;
    /** The id of the job that a queue hands out next, null where none waits. Asked by the connection of a worker, which waits for the server. */
    firstWaiting(queue: string, backend: IQueueBackend): Promise<string | null>;
    /** A connection that fails at once while the server is away. @throws ScanwireError `UNAVAILABLE`. */
    producer(): Promise<BullmqConnection>;
    /** As `DeliveryQueue.hasLostJobs`. */
    hasLostJobs?(): Promise<boolean>;
    /** A connection for one worker, which waits for the server for as long as it takes. */
    worker(): Promise<BullmqWorkerConnection>;
    /** What the server says that only somebody who sets it up can change, and how; null for anything else. Absent where nothing is like that. */
    refusal?(cause: unknown): ScanwireError | null;
    close(): Promise<void>;
}
