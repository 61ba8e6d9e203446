import t from 'tap';
import { deliveryQueueContract, type Queues } from '../../../../adapters/contract/index.ts';
import { queueLaws } from '../../../../adapters/contract/webhooks/queue-laws.ts';
import { memoryQueue } from '../../../../adapters/memory/index.ts';
import { ScanwireError } from '../../../../lib/errors.ts';
import type { DeliveryJob, DeliveryQueue } from '../../../../lib/webhooks/dispatching/delivery-queue.ts';
import { lawOf, mapValues, proveLaws } from '../laws.ts';

type Mutant = (honest: DeliveryQueue) => Partial<DeliveryQueue>;

const MUTANTS: Readonly<Record<string, Mutant>> = {
    'is ready': () => ({ ready: () => Promise.reject(new ScanwireError('UNAVAILABLE', 'not yet')) }),
    'hands a job over as it was added': (queue) => ({
        work: (collector, handler, options) => queue.work(collector, (job) => handler({ ...job, attempt: 1 }), options),
    }),
    'hands over jobs that were added before the worker came': (queue) => {
        let listening = false;
        return {
            add: async (jobs) => (listening ? await queue.add(jobs) : undefined),
            work: (...args) => {
                listening = true;
                return queue.work(...args);
            },
        };
    },
    'hands jobs to the workers of their collector only': (queue) => ({
        add: (jobs) => queue.add(jobs.map((job) => ({ ...job, collector: 'west' }))),
    }),
    'hands a single attempt over before all that wait': (queue) => ({
        add: (jobs) => queue.add(jobs.map((job) => ({ ...job, singleAttempt: false }))),
    }),
    'hands over jobs that another queue object added': () => ({ add: async () => {} }),
    'shares the jobs of a collector among its workers, each job once': (queue) => {
        let last: Parameters<DeliveryQueue['work']>[1] | undefined;
        return {
            work: (collector, handler, options) => {
                const earlier = last;
                last = handler;
                return queue.work(collector, async (job) => void (await Promise.all([handler(job), earlier?.(job)])), options);
            },
        };
    },
    'has as many jobs in hand as its concurrency and no more': (queue) => ({
        work: (collector, handler, options) => queue.work(collector, handler, { ...options, concurrency: options.concurrency + 1 }),
    }),
    'ignores a job that is there already': (queue) => ({
        // the number of the attempt is made up and taken off again, so that no two jobs are the same
        add: (jobs) => queue.add(jobs.map((job) => ({ ...job, attempt: Math.random() }))),
        work: (collector, handler, options) => queue.work(collector, (job) => handler({ ...job, attempt: 1 }), options),
    }),
    'takes another attempt of the same delivery for another job': (queue) => ({
        add: (jobs) => queue.add(jobs.map((job) => ({ ...job, attempt: 1 }))),
    }),
    'takes the same attempt with another claim, or without one, for another job': (queue) => ({
        add: (jobs) => queue.add(jobs.map((job) => ({ ...job, reservation: null }))),
    }),
    'hands a claim over as it was added, if at all': (queue) => ({
        work: (collector, handler, options) =>
            queue.work(
                collector,
                (job) => handler({ ...job, reservation: job.reservation && { ...job.reservation, generation: 0 } }),
                options,
            ),
    }),
    'takes a job again once it is done': once,
    'reports a rejected handler and drops its job': (queue) => ({
        work: (collector, handler, { concurrency }) => queue.work(collector, handler, { concurrency }),
    }),
    'waits for the jobs in hand when a worker is closed, and takes no more': (queue) => ({
        work: async (...args) => {
            const worker = await queue.work(...args);
            return { close: async () => void worker.close() };
        },
    }),
    'leaves to others what a worker has taken and not begun when it is closed': (queue) => ({
        // takes jobs ahead, and forgets them
        work: async (collector, handler, options) => {
            let closed = false;
            let last = Promise.resolve();
            const inTurn = (job: DeliveryJob): Promise<void> => {
                last = last.then(() => (closed ? undefined : handler(job)));
                return last;
            };
            const worker = await queue.work(collector, inTurn, { ...options, concurrency: 100 });
            return {
                close() {
                    closed = true;
                    return worker.close();
                },
            };
        },
    }),
    'hands over a job that a worker has left, although its own is not done': (queue) => ({
        add: (jobs) => queue.add(jobs.map(({ left: _, ...job }) => job)),
    }),
    'adds nothing when given nothing': (queue) => ({
        add: (jobs) => (jobs.length === 0 ? Promise.reject(new Error('no jobs')) : queue.add(jobs)),
    }),
    'says to each that asks that jobs may be gone once they are, where it can tell': () => ({ hasLostJobs: async () => false }),
    'refuses jobs after it was closed': () => ({ close: async () => {} }),
};

proveLaws(
    t,
    (test, create) => deliveryQueueContract(test, create, { deadline: 200 }),
    Object.keys(queueLaws),
    mapValues(MUTANTS, (mutant) => () => {
        const honest = memoryQueue();
        const queue = { ...honest, ...mutant(honest) };
        return { queue, other: queue, loseJobs: () => {} };
    }),
    /./,
);

const LOSS = 'says to each that asks that jobs may be gone once they are, where it can tell';

function lossLaw(fixture: Partial<Queues>): Promise<void> {
    const queue = memoryQueue();
    return lawOf(deliveryQueueContract, () => ({ queue, other: queue, ...fixture }), LOSS)();
}

t.test('fails a queue that can tell of a loss, and whose fixture makes none', async (t) => {
    await t.rejects(lossLaw({}), { message: /the fixture must supply loseJobs\(\)/ });
});

t.test('passes a queue that says so more than once, and one that cannot tell', async (t) => {
    const cautious = { ...memoryQueue(), hasLostJobs: async () => true };
    await t.resolves(lossLaw({ queue: cautious, other: cautious, loseJobs: () => {} }));
    const { hasLostJobs: _, ...silent } = memoryQueue();
    await t.resolves(lossLaw({ queue: silent, other: silent }));
});

/** Remembers every job for ever. */
function once(queue: DeliveryQueue): Partial<DeliveryQueue> {
    const added = new Set<string>();
    return {
        add: async (jobs) => {
            const fresh = jobs.filter(({ deliveryId, attempt }) => !added.has(`${deliveryId}/${attempt}`));
            for (const { deliveryId, attempt } of fresh) {
                added.add(`${deliveryId}/${attempt}`);
            }
            await queue.add(fresh);
        },
    };
}
