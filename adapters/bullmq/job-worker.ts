import { type IQueueBackend, type Job, Worker } from 'bullmq';
import type { JobsInHand } from '../../lib/webhooks/sending/jobs-in-hand.ts';

/** What the ids of the jobs of tests begin with, so that one is known by its id alone. */
export const TEST_JOBS = 'test-';

/** Milliseconds from one look for a test to the next, while nothing else is fetched. */
const LOOK_INTERVAL = 250;

/**
 * A worker of BullMQ that begins each job when it has come. BullMQ fetches one after the other, until it has as many as it may or none is there, and
 * begins the first only then: jobs that come as quickly as it fetches them would wait for hundreds. So it may have one more than have begun.
 *
 * A worker that has as many as it may fetches nothing before one of them ends. Only then does it look again and again whether the next job is a test,
 * which has a slot of its own, and fetches that one beside BullMQ's loop.
 */
export class JobWorker extends Worker<unknown, void, string, IQueueBackend> {
    /** Whether it may fetch more than one, and another for one that has ended; and whether a test. */
    hands: Pick<JobsInHand, 'mayFetch' | 'mayFetchTest'> = { mayFetch: () => true, mayFetchTest: () => false };
    /** The id of the job that the server hands out next, null where none waits. */
    firstWaiting: () => Promise<string | null> = async () => null;
    readonly #limit = this.concurrency;
    #begun = 0;
    #nextLook: NodeJS.Timeout | undefined;
    /** Whether the last look failed. While the server is away all do, four times a second. */
    #lookFailed = false;
    /** Looks, and jobs fetched by them, that have not ended. BullMQ's loop knows nothing of them. */
    readonly #beside = new Set<Promise<unknown>>();

    override async processJob(job: Job<unknown, void>, token: string): ReturnType<Worker<unknown, void>['processJob']> {
        this.#begun += 1;
        this.limitFetching();
        try {
            return await super.processJob(job, token, () => this.hands.mayFetch());
        } finally {
            this.#begun -= 1;
            this.limitFetching();
        }
    }

    limitFetching(): void {
        this.concurrency = Math.max(1, Math.min(this.#limit, this.hands.mayFetch() ? this.#begun + 1 : this.#begun));
        if (!this.#isFull()) {
            this.#lookFailed = false;
        } else if (this.#nextLook === undefined && this.closing === undefined) {
            this.#nextLook = setTimeout(() => this.#goOnBeside(this.#look()), LOOK_INTERVAL);
        }
    }

    #isFull(): boolean {
        return !this.hands.mayFetch() || this.#begun >= this.#limit;
    }

    /** Of failures that follow one another, while the worker stays full, only the first is reported. */
    async #look(): Promise<void> {
        try {
            if (this.#mayLook()) {
                await this.#fetchTests();
                this.#lookFailed = false;
            }
        } catch (error) {
            if (!this.#lookFailed) {
                this.#lookFailed = true;
                throw error;
            }
        } finally {
            this.#nextLook = undefined;
            this.limitFetching();
        }
    }

    /** Fetches those that are next. Where another worker is quicker, it gets what comes after that test: one job, and it looks no further. */
    async #fetchTests(): Promise<void> {
        while (this.#mayLook() && isTest(await this.firstWaiting())) {
            const token = `${this.id}:test`;
            const job = await this.getNextJob(token, { block: false });
            if (job === undefined) {
                break;
            }

            this.#goOnBeside(super.processJob(job, token, () => false));
            if (!isTest(job.id)) {
                break;
            }
        }
    }

    #mayLook(): boolean {
        return !this.paused && this.#isFull() && this.hands.mayFetchTest();
    }

    #goOnBeside(work: Promise<unknown>): void {
        const ended = work
            .then(
                () => {},
                (error: Error) => this.#report(error),
            )
            .finally(() => this.#beside.delete(ended));
        this.#beside.add(ended);
    }

    #report(error: Error): void {
        if (this.closing === undefined) {
            this.emit('error', error);
        }
    }

    /** What goes on beside BullMQ's loop needs the connection, too. */
    override close(force = false): Promise<void> {
        clearTimeout(this.#nextLook);
        if (this.closing === undefined && this.mainLoopRunning !== null) {
            this.mainLoopRunning = Promise.all([this.mainLoopRunning, this.#allBeside()]).then(() => {});
        }
        return super.close(force);
    }

    /** A look that is under way may still fetch one. */
    async #allBeside(): Promise<void> {
        while (this.#beside.size > 0) {
            await Promise.all(this.#beside);
        }
    }
}

function isTest(jobId: string | null | undefined): boolean {
    return jobId?.startsWith(TEST_JOBS) === true;
}
