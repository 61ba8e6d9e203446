import { type IQueueBackend, type JobsOptions, Queue } from 'bullmq';
import { ScanwireError } from '../../lib/errors.ts';
import { closedQueue, type DeliveryJob, type DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { within } from '../../lib/within.ts';
import { TEST_JOBS } from './job-worker.ts';
import { type BullmqServer, type BullmqWorker, bullmqWorker, queueName } from './worker.ts';

type ProducerQueue = Queue<unknown, unknown, string, unknown, unknown, string, IQueueBackend>;

/** A {@link DeliveryQueue} on BullMQ: one BullMQ queue for each collector, one job for each attempt. */
export function bullmqQueue(server: BullmqServer): DeliveryQueue {
    const producers = new Map<string, Promise<ProducerQueue>>();
    /** Those of this process, by collector. */
    const workers = new Map<string, BullmqWorker>();
    let closing: Promise<void> | undefined;

    /** A queue that failed to open stays broken for ever, so it is forgotten and the next call opens another. */
    function producer(name: string): Promise<ProducerQueue> {
        const known = producers.get(name);
        if (known !== undefined) {
            return known;
        }

        const opened = openProducer(server, name);
        producers.set(name, opened);
        opened.catch(() => producers.delete(name));
        return opened;
    }

    /** Adds those of the jobs that belong to the queue. */
    async function addTo(name: string, jobs: readonly DeliveryJob[]): Promise<void> {
        try {
            const queue = await producer(name);
            const added = bullmqJobs(jobs.filter(({ collector }) => queueName(collector) === name));
            if (added.length <= server.few) {
                await Promise.all(added.map(({ name, data, opts }) => queue.add(name, data, opts)));
            } else {
                await queue.addBulk([...added]);
            }
        } catch (cause) {
            const away = `Cannot add jobs to queue ${name}: ${server.name} does not take them`;
            throw cause instanceof ScanwireError ? cause : (server.refusal?.(cause) ?? new ScanwireError('UNAVAILABLE', away, { cause }));
        }
    }

    async function close(): Promise<void> {
        const opened = await Promise.allSettled(producers.values());
        await Promise.allSettled(opened.map((result) => (result.status === 'fulfilled' ? result.value.close() : null)));
        await server.close();
    }

    return {
        name: server.name,
        address: (deployment) => server.address(deployment),
        ready: () => server.ready(),

        async add(jobs) {
            if (closing !== undefined) {
                throw closedQueue();
            }

            const left = jobs.filter((job) => workers.get(job.collector)?.takes(job) !== true);
            const names = new Set(left.map(({ collector }) => queueName(collector)));
            if (names.size > 1) {
                server.gatherWrites?.();
            }
            await Promise.all(Array.from(names, (name) => addTo(name, left)));
        },

        ...(server.hasLostJobs === undefined ? {} : { hasLostJobs: () => (server.hasLostJobs as () => Promise<boolean>)() }),

        async work(collector, handler, options) {
            const worker = await bullmqWorker(server, collector, handler, options);
            workers.set(collector, worker);
            return worker;
        },

        close() {
            closing ??= close();
            return closing;
        },
    };
}

const JOB_OPTIONS: JobsOptions = { attempts: 1, removeOnComplete: true, removeOnFail: true };
const OPEN_TIMEOUT = 5_000;
/** Nobody reads BullMQ's stream of events here, so it is kept short. */
const EVENTS_KEPT = 100;

async function openProducer(server: BullmqServer, name: string): Promise<ProducerQueue> {
    const options = { ...(await server.producer()), defaultJobOptions: JOB_OPTIONS, streams: { events: { maxLen: EVENTS_KEPT } } };
    const queue = new Queue(name, options, server.backend);
    // What breaks the connection also rejects the call that needed it; here it only must not become an unhandled 'error'.
    queue.on('error', () => {});
    try {
        const late = (): Error => new Error(`${server.name} did not answer within ${OPEN_TIMEOUT} ms`);
        await within(queue.waitUntilReady(), { timeout: OPEN_TIMEOUT, late });
        return queue;
    } catch (error) {
        void queue.close().catch(() => {});
        throw error;
    }
}

/** Deliveries that share one job of BullMQ, at most; where fewer are added at once, they are spread over so many jobs. */
const BUNDLE = { max: 16, spread: 8 };

interface BullmqJob {
    readonly name: string;
    readonly data: object;
    readonly opts: JobsOptions;
}

/** Those that are handed out with their claims together share a job: BullMQ's work is for the job. */
function bullmqJobs(jobs: readonly DeliveryJob[]): readonly BullmqJob[] {
    const bundled = jobs.filter(({ reservation, singleAttempt, left }) => reservation !== null && !singleAttempt && left === undefined);
    const single = jobs.filter((job) => !bundled.includes(job));
    const size = Math.min(BUNDLE.max, Math.ceil(bundled.length / BUNDLE.spread));
    const bundles = Array.from({ length: Math.ceil(bundled.length / Math.max(1, size)) }, (_, index) => {
        return bundle(bundled.slice(index * size, (index + 1) * size));
    });
    return [...single.map(singleJob), ...bundles];
}

/** The same attempt has the same job id, so that adding it again while it waits changes nothing. */
function singleJob(job: DeliveryJob): BullmqJob {
    const { deliveryId, attempt, singleAttempt, reservation, left } = job;
    // One that has to be claimed must not be kept out by one whose claim nobody may use any more, nor by that of a worker that has left it.
    const parts = [deliveryId, attempt, ...(reservation === null ? [] : [reservation.token]), ...(left === undefined ? [] : [left])];
    const id = parts.join('-');
    const jobId = singleAttempt ? `${TEST_JOBS}${id}` : id;
    return { name: 'attempt', data: dataOf(job), opts: { jobId, lifo: singleAttempt } };
}

function bundle(jobs: readonly DeliveryJob[]): BullmqJob {
    const [first] = jobs;
    return jobs.length === 1
        ? singleJob(first as DeliveryJob)
        : { name: 'attempts', data: { deliveries: jobs.map(dataOf) }, opts: { jobId: `bundle-${first?.reservation?.token}` } };
}

/** A reservation is stored as `grant`: processes of earlier releases, which run beside this one during an upgrade, read that name. */
function dataOf({ deliveryId, exporterId, attempt, singleAttempt, reservation, left }: DeliveryJob): object {
    return {
        deliveryId,
        exporterId,
        attempt,
        ...(singleAttempt && { singleAttempt }),
        ...(reservation !== null && { grant: reservation }),
        left,
    };
}
