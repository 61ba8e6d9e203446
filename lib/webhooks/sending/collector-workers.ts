import { batched } from '../../batched.ts';
import { allEnded } from '../../within.ts';
import type { DeliveryJob, QueueWorker } from '../dispatching/delivery-queue.ts';
import { spent } from '../dispatching/reservations.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { deliveryWorker } from './delivery-worker.ts';

/** Maximum number of jobs that are left to others together. */
const BATCH = 500;

/**
 * What a process has begun in order to send: the session under which it claims, and a worker for each of its collectors, the named pools of
 * workers to which exporters belong.
 */
export interface CollectorWorkers {
    /** Begins to send for these collectors, `concurrency` attempts of each at once. If it is stopped meanwhile, nothing more begins. */
    begin(collectors: Iterable<string>, concurrency: number): Promise<void>;
    /** Stops the workers. Resolves once everything that is being sent has ended, what has just begun included. */
    stop(): Promise<void>;
    /** Ends the session, when the workers have been stopped. */
    end(): Promise<void>;
}

/**
 * The workers of a process, of which none has begun.
 *
 * @param onFreed As that of `ClaimingSession.begin`.
 */
export function collectorWorkers(context: WebhooksContext, onFreed: () => void): CollectorWorkers {
    const { member, queue, session, sender, onError } = context;
    const sending = deliveryWorker(context);
    const workers: QueueWorker[] = [];
    let claiming = false;
    let stops = 0;
    /** Resolves once all that was asked to begin has begun or failed. */
    let beginning: Promise<unknown> = Promise.resolve();

    /** Gives jobs back to the queue, for other workers. If that fails, their deliveries are handed out again by the sweep. */
    const leave = batched<DeliveryJob, void>(async (jobs) => {
        const left = jobs.map((job) => ({ ...job, reservation: spent(job.reservation), left: (job.left ?? 0) + 1 }));
        await queue.add(left).catch(onError);
        return jobs.map(() => undefined);
    }, BATCH);

    async function startWorker(collector: string, concurrency: number): Promise<QueueWorker> {
        const stopping = { isStopping: false };
        const leaving = new Set<Promise<void>>();

        async function deliver(job: DeliveryJob): Promise<void> {
            if (!(await sending.deliver(job, stopping))) {
                await leave(job);
            }
        }

        const worker = await queue.work(collector, deliver, { concurrency, onError, onLeft: (job) => leaving.add(leave(job)) });
        return {
            async close() {
                stopping.isStopping = true;
                sending.stop();
                await worker.close();
                await Promise.all(leaving);
            },
        };
    }

    async function begin(collectors: Iterable<string>, concurrency: number): Promise<void> {
        const before = stops;
        await member.join('worker');
        if (!claiming) {
            sender.open?.();
            await session.begin(onFreed);
            claiming = true;
        }
        for (const collector of collectors) {
            if (stops === before) {
                workers.push(await startWorker(collector, concurrency));
                await session.offer(collector, concurrency);
            }
        }
    }

    async function stopBegun(): Promise<void> {
        member.leave();
        if (claiming) {
            session.withdraw();
        }
        const closed = workers.map((worker) => worker.close());
        await allEnded(closed, onError);
    }

    return {
        async begin(collectors, concurrency) {
            const begun = begin(collectors, concurrency);
            beginning = Promise.allSettled([beginning, begun]);
            await begun;
        },

        async stop() {
            stops += 1;
            await Promise.all([stopBegun(), beginning.then(stopBegun)]);
        },

        async end() {
            workers.length = 0;
            if (claiming) {
                claiming = false;
                await session.end();
            }
        },
    };
}
