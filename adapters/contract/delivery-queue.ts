import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { DeliveryJob, DeliveryQueue, QueueWorker } from '../../lib/webhooks/queue.ts';
import type { ContractTest } from './contract-test.ts';
import { until } from './until.ts';

/** Two queue objects over the same jobs, as two processes have them; one and the same where a queue lives in one process. */
export interface Queues {
    readonly queue: DeliveryQueue;
    readonly other: DeliveryQueue;
    /** Frees what `create` took; both queues are closed by then. */
    stop(): Promise<void>;
}

interface Bench extends Queues {
    readonly until: Until;
    /** A gate for handlers to wait at; opened after the test at the latest. */
    gate(): Gate;
    /** Starts a worker that is closed after the test, and answers with the jobs it has seen. */
    start(collector: string, options?: StartOptions): Promise<{ readonly seen: DeliveryJob[]; readonly worker: QueueWorker }>;
}

interface Gate {
    readonly opened: Promise<void>;
    open(): void;
}

type Until = (what: string, condition: () => boolean | Promise<boolean>) => Promise<void>;

interface StartOptions {
    readonly on?: DeliveryQueue;
    readonly handler?: (job: DeliveryJob) => Promise<void>;
    readonly concurrency?: number;
    readonly onError?: (error: Error) => void;
}

const LAWS: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
    'is ready': async ({ queue, other }) => {
        await queue.ready();
        await other.ready();
    },

    'hands a job over as it was added': async ({ queue, start, until }) => {
        const jobs = [jobFor('west', 1), jobFor('west', 12)];
        const { seen } = await start('west');
        await queue.add(jobs);
        await until('both jobs', () => seen.length === 2);
        assert.deepEqual(sorted(seen), sorted(jobs));
    },

    'hands over jobs that were added before the worker came': async ({ queue, start, until }) => {
        const job = jobFor('west');
        await queue.add([job]);
        const { seen } = await start('west');
        await until('the job', () => seen.length === 1);
        assert.deepEqual(seen, [job]);
    },

    'hands jobs to the workers of their collector only': async ({ queue, start, until }) => {
        const west = await start('west');
        const east = await start('east');
        const jobs = Array.from({ length: 6 }, (_, place) => jobFor(place % 2 === 0 ? 'west' : 'east'));
        await queue.add(jobs);
        await until('all jobs', () => west.seen.length + east.seen.length >= 6);
        assert.deepEqual(sorted(west.seen), sorted(jobs.filter(({ collector }) => collector === 'west')));
        assert.deepEqual(sorted(east.seen), sorted(jobs.filter(({ collector }) => collector === 'east')));
    },

    'hands over jobs that another queue object added': async ({ other, start, until }) => {
        const { seen } = await start('west');
        const job = jobFor('west');
        await other.add([job]);
        await until('the job', () => seen.length === 1);
        assert.deepEqual(seen, [job]);
    },

    'shares the jobs of a collector among its workers, each job once': async ({ queue, other, start, until }) => {
        const both = [await start('west'), await start('west', { on: other })];
        const jobs = Array.from({ length: 40 }, () => jobFor('west'));
        await queue.add(jobs);
        await until('all jobs', () => both.flatMap(({ seen }) => seen).length >= 40);
        assert.deepEqual(sorted(both.flatMap(({ seen }) => seen)), sorted(jobs));
    },

    'has as many jobs in hand as its concurrency and no more': async ({ queue, start, until, gate }) => {
        const door = gate();
        let inHand = 0;
        let most = 0;
        const handler = async (job: DeliveryJob): Promise<void> => {
            most = Math.max(most, ++inHand);
            if (job.attempt === 1) {
                // more work from within a handler must not get past the limit either
                await queue.add([{ ...job, attempt: 2 }]);
            }
            await door.opened;
            inHand--;
        };
        const { seen } = await start('west', { handler, concurrency: 3 });
        await queue.add(Array.from({ length: 10 }, () => jobFor('west')));
        await until('three jobs in hand', () => inHand === 3);
        door.open();
        await until('all jobs', () => seen.length === 20 && inHand === 0);
        assert.equal(most, 3);
    },

    'ignores a job that is there already': async ({ queue, other, start, until, gate }) => {
        const door = gate();
        const [first, second] = [jobFor('west'), jobFor('west')];
        await queue.add([first, first]);
        await other.add([first]);
        const { seen } = await start('west', { handler: () => door.opened, concurrency: 1 });
        await until('the first in hand', () => seen.length === 1);
        await other.add([first, second]);
        door.open();
        await until('the second', () => seen.some(({ deliveryId }) => deliveryId === second.deliveryId));
        assert.deepEqual(seen, [first, second]);
    },

    'takes another attempt of the same delivery for another job': async ({ queue, start, until }) => {
        const job = jobFor('west', 1);
        const { seen } = await start('west');
        await queue.add([job, { ...job, attempt: 2 }]);
        await until('both attempts', () => seen.length === 2);
        assert.deepEqual(seen.map(({ attempt }) => attempt).sort(), [1, 2]);
    },

    'takes a job again once it is done': async ({ queue, start, until }) => {
        const job = jobFor('west');
        const { seen } = await start('west');
        await addUntilSeen(queue, until, job, seen, 1);
        await addUntilSeen(queue, until, job, seen, 2);
    },

    'reports a rejected handler and drops its job': async ({ queue, start, until }) => {
        const errors: Error[] = [];
        const [bad, good] = [jobFor('west'), jobFor('west')];
        const handler = async ({ deliveryId }: DeliveryJob): Promise<void> => {
            if (deliveryId === bad.deliveryId) {
                throw new Error('refused by the handler');
            }
        };
        const { seen } = await start('west', { handler, concurrency: 1, onError: (error) => errors.push(error) });
        await queue.add([bad]);
        await until('the report', () => errors.length > 0);
        await queue.add([good]);
        await until('the next job', () => seen.some(({ deliveryId }) => deliveryId === good.deliveryId));
        assert.deepEqual(seen, [bad, good]);
        assert.match(errors.map(({ message }) => message).join(), /refused by the handler/);

        await addUntilSeen(queue, until, bad, seen, 3);
    },

    'waits for the jobs in hand when a worker is closed, and takes no more': async ({ queue, start, until, gate }) => {
        const door = gate();
        let done = 0;
        const handler = async (): Promise<void> => {
            await door.opened;
            done++;
        };
        const first = await start('west', { handler, concurrency: 2 });
        const jobs = Array.from({ length: 5 }, () => jobFor('west'));
        await queue.add(jobs);
        await until('two jobs in hand', () => first.seen.length === 2);

        let closed = false;
        const closing = first.worker.close().then(() => {
            closed = true;
        });
        await new Promise(setImmediate);
        assert.deepEqual([closed, done], [false, 0]);
        door.open();
        await closing;
        assert.deepEqual([first.seen.length, done], [2, 2]);

        const second = await start('west');
        await until('the others', () => second.seen.length === 3);
        assert.deepEqual(sorted([...first.seen, ...second.seen]), sorted(jobs));
    },

    'adds nothing when given nothing': async ({ queue }) => {
        await queue.add([]);
    },

    'refuses jobs after it was closed': async ({ queue }) => {
        await queue.close();
        await assert.rejects(queue.add([jobFor('west')]), { code: 'UNAVAILABLE' });
    },
};

export interface DeliveryQueueContractOptions {
    /** Milliseconds after which an awaited job counts as lost; 20,000 by default. */
    readonly deadline?: number;
}

/**
 * Registers one test for each thing that a `DeliveryQueue` must do.
 *
 * @param test As `test(name, run)` of your test runner.
 * @param create Makes queues without jobs for one test; they are closed and stopped after it.
 */
export function deliveryQueueContract(
    test: ContractTest,
    create: () => Promise<Queues>,
    { deadline = 20_000 }: DeliveryQueueContractOptions = {},
): void {
    for (const [name, law] of Object.entries(LAWS)) {
        test(name, async () => {
            const queues = await create();
            const workers: QueueWorker[] = [];
            const gates: Gate[] = [];
            try {
                await law({
                    ...queues,
                    start: starter(queues.queue, workers),
                    gate: () => {
                        const gate = newGate();
                        gates.push(gate);
                        return gate;
                    },
                    until: (what, condition) => until(what, condition, deadline),
                });
            } finally {
                for (const gate of gates) {
                    gate.open();
                }
                await Promise.all(workers.map((worker) => worker.close()));
                await queues.queue.close();
                await queues.other.close();
                await queues.stop();
            }
        });
    }
}

function starter(queue: DeliveryQueue, workers: QueueWorker[]): Bench['start'] {
    return async (collector, { on = queue, handler, concurrency = 5, onError } = {}) => {
        const seen: DeliveryJob[] = [];
        const run = async (job: DeliveryJob): Promise<void> => {
            seen.push(job);
            await handler?.(job);
        };
        const worker = await on.work(collector, run, { concurrency, ...(onError === undefined ? {} : { onError }) });
        workers.push(worker);
        return { seen, worker };
    };
}

/** A job is there a little longer than its handler runs; so it is added until it was taken. */
async function addUntilSeen(
    queue: DeliveryQueue,
    until: Until,
    job: DeliveryJob,
    seen: readonly DeliveryJob[],
    count: number,
): Promise<void> {
    await until(`job number ${count}`, async () => {
        await queue.add([job]);
        return seen.length >= count;
    });
}

function jobFor(collector: string, attempt = 1): DeliveryJob {
    return { collector, deliveryId: randomUUID(), attempt };
}

function sorted(jobs: readonly DeliveryJob[]): readonly DeliveryJob[] {
    return [...jobs].sort((a, b) => a.deliveryId.localeCompare(b.deliveryId) || a.attempt - b.attempt);
}

function newGate(): Gate {
    let open = (): void => {};
    const opened = new Promise<void>((resolve) => {
        open = resolve;
    });
    return { opened, open: () => open() };
}
