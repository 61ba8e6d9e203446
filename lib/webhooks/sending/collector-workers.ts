import type { QueueWorker } from '../dispatching/delivery-queue.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { deliveryWorker } from './delivery-worker.ts';

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
    const { member, session, sender } = context;
    const startWorker = deliveryWorker(context);
    const workers: QueueWorker[] = [];
    let claiming = false;
    let stops = 0;
    /** Resolves once all that was asked to begin has begun or failed. */
    let beginning: Promise<unknown> = Promise.resolve();

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
        await Promise.all(workers.map((worker) => worker.close()));
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
