import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { DeliveryJob, DeliveryQueue, QueueWorker } from '../../../lib/webhooks/dispatching/delivery-queue.ts';
import type { Reservation } from '../../../lib/webhooks/dispatching/reservations.ts';
import { until } from '../assertions.ts';
import type { ContractFixture, Laws } from '../register-laws.ts';

/** Two queue objects over the same jobs, as two processes have them; one and the same where a queue lives in one process. */
export interface Queues extends ContractFixture {
    /** Without jobs; closed before `stop`, as the other is. */
    readonly queue: DeliveryQueue;
    readonly other: DeliveryQueue;
    /** Takes all jobs away, as an emptied server does; needed where `queue.hasLostJobs` is there. */
    readonly loseJobs?: () => void | Promise<void>;
}

/** Queues, and what the laws do with them. */
interface Bench extends Queues {
    /** Waits for the condition, until the deadline of the contract. */
    until(condition: () => boolean | Promise<boolean>): Promise<void>;
    /** A gate for handlers to wait at; opened after the law at the latest. */
    gate(): { readonly opened: Promise<void>; open(): void };
    /** Starts a worker that is closed after the law, and resolves to it and to the jobs it has seen. */
    work(collector: string, options?: Work): Promise<{ readonly seen: DeliveryJob[]; readonly worker: QueueWorker }>;
}

interface Work {
    readonly on?: DeliveryQueue;
    readonly handler?: (job: DeliveryJob) => Promise<void>;
    readonly concurrency?: number;
    readonly onError?: (error: Error) => void;
    readonly onLeft?: (job: DeliveryJob) => void;
}

/** What every `DeliveryQueue` does. */
export const queueLaws: Laws<Bench> = {
    async 'is ready'({ queue, other }) {
        await queue.ready();
        await other.ready();
    },

    async 'hands a job over as it was added'({ queue, work, until }) {
        const jobs = [jobFor('west', 1), jobFor('west', 12)];
        const { seen } = await work('west');
        await queue.add(jobs);
        await until(() => seen.length === 2);
        assert.deepEqual(sorted(seen), sorted(jobs));
    },

    async 'hands over jobs that were added before the worker came'({ queue, work, until }) {
        const job = jobFor('west');
        await queue.add([job]);
        const { seen } = await work('west');
        await until(() => seen.length === 1);
        assert.deepEqual(seen, [job]);
    },

    async 'hands a single attempt over before all that wait'({ queue, work, until }) {
        const waiting = [jobFor('west'), jobFor('west')];
        const single = jobFor('west', 1, true);
        await queue.add(waiting);
        await queue.add([single]);
        const { seen } = await work('west', { concurrency: 1 });
        await until(() => seen.length === 3);
        assert.deepEqual([seen[0], ...sorted(seen.slice(1))], [single, ...sorted(waiting)]);
    },

    async 'hands jobs to the workers of their collector only'({ queue, work, until }) {
        const west = await work('west');
        const east = await work('east');
        const jobs = Array.from({ length: 6 }, (_, index) => jobFor(index % 2 === 0 ? 'west' : 'east'));
        await queue.add(jobs);
        await until(() => west.seen.length + east.seen.length >= 6);
        assert.deepEqual(sorted(west.seen), sorted(jobs.filter(({ collector }) => collector === 'west')));
        assert.deepEqual(sorted(east.seen), sorted(jobs.filter(({ collector }) => collector === 'east')));
    },

    async 'hands over jobs that another queue object added'({ other, work, until }) {
        const { seen } = await work('west');
        const job = jobFor('west');
        await other.add([job]);
        await until(() => seen.length === 1);
        assert.deepEqual(seen, [job]);
    },

    async 'shares the jobs of a collector among its workers, each job once'({ queue, other, work, until }) {
        const both = [await work('west'), await work('west', { on: other })];
        const jobs = Array.from({ length: 40 }, () => jobFor('west'));
        await queue.add(jobs);
        await until(() => both.flatMap(({ seen }) => seen).length >= 40);
        assert.deepEqual(sorted(both.flatMap(({ seen }) => seen)), sorted(jobs));
    },

    async 'has as many jobs in hand as its concurrency and no more'({ queue, work, until, gate }) {
        const door = gate();
        let running = 0;
        let max = 0;
        const handler = async (job: DeliveryJob): Promise<void> => {
            max = Math.max(max, ++running);
            if (job.attempt === 1) {
                // more work from within a handler must not get past the limit either
                await queue.add([{ ...job, attempt: 2 }]);
            }
            await door.opened;
            running--;
        };
        const { seen } = await work('west', { handler, concurrency: 3 });
        await queue.add(Array.from({ length: 10 }, () => jobFor('west')));
        await until(() => running === 3);
        door.open();
        await until(() => seen.length === 20 && running === 0);
        assert.equal(max, 3);
    },

    async 'ignores a job that is there already'({ queue, other, work, until, gate }) {
        const door = gate();
        const [first, second] = [jobFor('west'), jobFor('west')];
        await queue.add([first, first]);
        await other.add([first]);
        const { seen } = await work('west', { handler: () => door.opened, concurrency: 1 });
        await until(() => seen.length === 1);
        await other.add([first, second]);
        door.open();
        await until(() => seen.some(({ deliveryId }) => deliveryId === second.deliveryId));
        assert.deepEqual(seen, [first, second]);
    },

    async 'takes another attempt of the same delivery for another job'({ queue, work, until }) {
        const job = jobFor('west', 1);
        const { seen } = await work('west');
        await queue.add([job, { ...job, attempt: 2 }]);
        await until(() => seen.length === 2);
        assert.deepEqual(seen.map(({ attempt }) => attempt).sort(), [1, 2]);
    },

    async 'takes the same attempt with another claim, or without one, for another job'({ queue, work, until, gate }) {
        const door = gate();
        const job = jobFor('west', 1);
        const { seen } = await work('west', { handler: () => door.opened, concurrency: 5 });
        for (const reservation of [reservationOf('first'), reservationOf('second'), null]) {
            await queue.add([{ ...job, reservation }]);
        }
        await until(() => seen.length === 3);
    },

    async 'hands a claim over as it was added, if at all'({ queue, work, until }) {
        const job = { ...jobFor('west'), reservation: reservationOf('first') };
        const { seen } = await work('west');
        await queue.add([job]);
        await until(() => seen.length === 1);
        assert.deepEqual(seen, [{ ...job, reservation: seen[0]?.reservation && job.reservation }]);
    },

    async 'takes a job again once it is done'(bench) {
        const job = jobFor('west');
        const { seen } = await bench.work('west');
        await addUntilSeen(bench, job, seen, 1);
        await addUntilSeen(bench, job, seen, 2);
    },

    async 'reports a rejected handler and drops its job'(bench) {
        const { queue, work, until } = bench;
        const errors: Error[] = [];
        const [bad, good] = [jobFor('west'), jobFor('west')];
        const handler = async ({ deliveryId }: DeliveryJob): Promise<void> => {
            if (deliveryId === bad.deliveryId) {
                throw new Error('refused by the handler');
            }
        };
        const { seen } = await work('west', { handler, concurrency: 1, onError: (error) => errors.push(error) });
        await queue.add([bad]);
        await until(() => errors.length > 0);
        await queue.add([good]);
        await until(() => seen.some(({ deliveryId }) => deliveryId === good.deliveryId));
        assert.deepEqual(seen, [bad, good]);
        assert.match(errors.map(({ message }) => message).join(), /refused by the handler/);

        await addUntilSeen(bench, bad, seen, 3);
    },

    async 'waits for the jobs in hand when a worker is closed, and takes no more'({ queue, work, until, gate }) {
        const door = gate();
        let done = 0;
        const handler = async (): Promise<void> => {
            await door.opened;
            done++;
        };
        const first = await work('west', { handler, concurrency: 2 });
        const jobs = Array.from({ length: 5 }, () => jobFor('west'));
        await queue.add(jobs);
        await until(() => first.seen.length === 2);

        let closed = false;
        const closing = first.worker.close().then(() => {
            closed = true;
        });
        await new Promise(setImmediate);
        assert.deepEqual([closed, done], [false, 0]);
        door.open();
        await closing;
        assert.deepEqual([first.seen.length, done], [2, 2]);

        const second = await work('west');
        await until(() => second.seen.length === 3);
        assert.deepEqual(sorted([...first.seen, ...second.seen]), sorted(jobs));
    },

    async 'leaves to others what a worker has taken and not begun when it is closed'({ queue, work, until, gate }) {
        const door = gate();
        const left: DeliveryJob[] = [];
        const first = await work('west', { handler: () => door.opened, concurrency: 1, onLeft: (job) => left.push(job) });
        const jobs = Array.from({ length: 16 }, () => ({ ...jobFor('west'), reservation: reservationOf(randomUUID()) }));
        await queue.add(jobs);
        await until(() => first.seen.length === 1);
        const closing = first.worker.close();
        const second = await work('west', { concurrency: 20 });
        await until(() => left.length + second.seen.length >= 15);
        door.open();
        await closing;
        assert.deepEqual(idsOf([...first.seen, ...left, ...second.seen]), idsOf(jobs));
    },

    async 'hands over a job that a worker has left, although its own is not done'({ queue, work, until, gate }) {
        const door = gate();
        const job = jobFor('west');
        const { seen } = await work('west', { handler: () => door.opened });
        const times: DeliveryJob[] = [job, { ...job, left: 1 }, { ...job, left: 2 }];
        for (const [index, one] of times.entries()) {
            await queue.add([one]);
            await until(() => seen.length === index + 1);
        }
        assert.deepEqual(seen, times);
    },

    async 'adds nothing when given nothing'({ queue, work, until }) {
        const job = jobFor('west');
        const { seen } = await work('west');
        await queue.add([]);
        await queue.add([job]);
        await until(() => seen.length > 0);
        assert.deepEqual(seen, [job]);
    },

    async 'says to each that asks that jobs may be gone once they are, where it can tell'({ queue, other, loseJobs }) {
        assert.equal(typeof other.hasLostJobs, typeof queue.hasLostJobs);
        if (queue.hasLostJobs === undefined) {
            return;
        }

        assert.ok(loseJobs, 'Cannot put the law to the test: the fixture must supply loseJobs(), which takes all jobs away (hasLostJobs)');
        const each = new Set([queue, other]);
        for (const one of each) {
            await one.hasLostJobs?.();
        }
        await queue.add([jobFor('west')]);
        await loseJobs();
        for (const one of each) {
            assert.equal(await one.hasLostJobs?.(), true);
        }
    },

    async 'refuses jobs after it was closed'({ queue }) {
        await queue.close();
        await assert.rejects(queue.add([jobFor('west')]), { code: 'UNAVAILABLE' });
    },
};

/**
 * What the laws work at. Stopping it closes the workers, then the queues.
 *
 * @param deadline Milliseconds after which an awaited job counts as lost.
 */
export function queueBench(queues: Queues, deadline: number): Bench {
    const workers: QueueWorker[] = [];
    const gates: (() => void)[] = [];
    return {
        ...queues,
        until: (condition) => until(condition, deadline),
        gate() {
            let open = (): void => {};
            const opened = new Promise<void>((resolve) => {
                open = resolve;
            });
            gates.push(open);
            return { opened, open };
        },
        async work(collector, { on = queues.queue, handler, ...options } = {}) {
            const seen: DeliveryJob[] = [];
            const run = async (job: DeliveryJob): Promise<void> => {
                seen.push(job);
                await handler?.(job);
            };
            const worker = await on.work(collector, run, { concurrency: 5, ...options });
            workers.push(worker);
            return { seen, worker };
        },
        async stop() {
            for (const open of gates) {
                open();
            }
            await Promise.all(workers.map((worker) => worker.close()));
            await queues.queue.close();
            await queues.other.close();
            await queues.stop?.();
        },
    };
}

/** A job is there a little longer than its handler runs; so it is added until it was taken. */
async function addUntilSeen({ queue, until }: Bench, job: DeliveryJob, seen: readonly DeliveryJob[], count: number): Promise<void> {
    await until(async () => {
        await queue.add([job]);
        return seen.length >= count;
    });
}

function jobFor(collector: string, attempt = 1, singleAttempt = false): DeliveryJob {
    return { collector, deliveryId: randomUUID(), exporterId: randomUUID(), attempt, singleAttempt, reservation: null };
}

function reservationOf(token: string): Reservation {
    return { token, beginBy: Date.now() + 1_000, generation: 2, attemptSinceReplay: 1, settings: 3 };
}

function idsOf(jobs: readonly DeliveryJob[]): readonly string[] {
    return jobs.map(({ deliveryId }) => deliveryId).sort();
}

function sorted(jobs: readonly DeliveryJob[]): readonly DeliveryJob[] {
    return [...jobs].sort((a, b) => a.deliveryId.localeCompare(b.deliveryId) || a.attempt - b.attempt);
}
