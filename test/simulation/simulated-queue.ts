import type { DeliveryJob, DeliveryQueue, QueueWorker } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { type JobsInHand, jobsInHand } from '../../lib/webhooks/sending/jobs-in-hand.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { Timeline } from './timeline.ts';
import type { QueueFault, Weather } from './weather.ts';

interface Worker {
    readonly process: SimulatedProcess;
    readonly concurrency: number;
    readonly inHand: JobsInHand;
    open: boolean;
    /** Jobs that it has got and not finished. */
    got: number;
}

/** A job whose process died is given to another after so many milliseconds, if it is not forgotten. */
const STALLED = 5_000;

/** A queue server that may lose, repeat, delay and reorder what it is given. */
export class SimulatedQueue {
    private readonly waiting = new Map<string, DeliveryJob[]>();
    private readonly workers = new Map<string, Worker[]>();
    private readonly keys = new Set<string>();
    /** How many times it was emptied, and who has heard of how many. */
    private emptied = 0;
    private readonly heard = new Map<string, number>();
    private readonly timeline: Timeline;
    private readonly weather: Weather;
    private readonly random: () => number;
    /** Whether the workers of a process begin what it hands out itself. */
    private readonly takesOwn: boolean;

    constructor(timeline: Timeline, weather: Weather, random: () => number) {
        this.takesOwn = random() < 0.5;
        this.timeline = timeline;
        this.weather = weather;
        this.random = random;
    }

    /** Loses all jobs. */
    empty(): void {
        this.waiting.clear();
        this.keys.clear();
        this.emptied += 1;
    }

    /** The queue as a process reaches it. */
    for(process: SimulatedProcess): DeliveryQueue {
        this.heard.set(process.name, this.emptied);
        return {
            ready: () => process.call('queue', 'ready', async () => undefined),

            add: async (jobs) => {
                const left = jobs.filter((job) => !this.isTaken(job, process));
                if (left.length > 0) {
                    await process.call('queue', `add ${left.map(nameOf).join()}`, async () => this.add(left, process));
                }
            },

            hasLostJobs: () =>
                process.call('queue', 'hasLostJobs', async () => {
                    const lost = this.heard.get(process.name) !== this.emptied;
                    this.heard.set(process.name, this.emptied);
                    return lost;
                }),

            work: (collector, handler, { concurrency, onError: report = () => {}, onLeft: leave = () => {} }) =>
                process.call('queue', 'work', async () => {
                    const inHand = jobsInHand(handler, concurrency, { report, leave });
                    return this.work(collector, { process, concurrency, inHand, open: true, got: 0 });
                }),

            close: async () => undefined,
        };
    }

    /** What is to be late goes through the queue, as if no worker of the process had room. */
    private isTaken(job: DeliveryJob, process: SimulatedProcess): boolean {
        const mayTake = this.takesOwn && this.weather.ofQueue(process.name) !== 'delays jobs a little';
        const own = this.workers.get(job.collector)?.find((worker) => worker.process === process && worker.open);
        const taken = mayTake && own?.inHand.takes(job) === true;
        if (taken) {
            this.timeline.note(`queue.take ${nameOf(job)}`);
        }
        return taken;
    }

    private add(jobs: readonly DeliveryJob[], process: SimulatedProcess): void {
        const fault = this.weather.ofQueue(process.name);
        for (const job of jobs) {
            const lost = fault === 'loses jobs' && this.random() < 0.5;
            if (!lost && !this.keys.has(keyOf(job))) {
                this.keys.add(keyOf(job));
                this.later(job, this.delayUnder(fault));
                if (fault === 'repeats jobs') {
                    this.later({ ...job, reservation: null }, 3_000 * this.random());
                }
            }
        }
    }

    private delayUnder(fault: QueueFault | null): number {
        switch (fault) {
            case 'delays jobs':
                return 5_000 * this.random() ** 2;
            case 'delays jobs a little':
                return 900 * this.random();
            default:
                return 2 * this.random();
        }
    }

    private later(job: DeliveryJob, delay: number): void {
        const { emptied } = this;
        const arrive = (): void => {
            if (emptied === this.emptied) {
                this.waiting.set(job.collector, [...(this.waiting.get(job.collector) ?? []), { ...job }]);
                this.deal(job.collector);
            }
        };
        this.timeline.after(delay, arrive, null);
    }

    /** To whom has room, one after the other. */
    private deal(collector: string): void {
        const waiting = this.waiting.get(collector) ?? [];
        for (;;) {
            const able = (this.workers.get(collector) ?? []).filter(({ process, open, got, concurrency, inHand }) => {
                return process.alive && open && got < concurrency && inHand.mayFetch();
            });
            const worker = able[Math.floor(this.random() * able.length)];
            const job = worker === undefined ? undefined : waiting.shift();
            if (worker === undefined || job === undefined) {
                return;
            }
            worker.got += 1;
            this.timeline.after(1, () => this.run(worker, job), worker.process);
            worker.process.onDeath(() => this.stall(job));
        }
    }

    private run(worker: Worker, job: DeliveryJob): void {
        if (!worker.open) {
            this.later(job, 0);
            return;
        }

        void worker.inHand.begin([job]).finally(() => {
            worker.got -= 1;
            this.keys.delete(keyOf(job));
            this.deal(job.collector);
        });
    }

    private stall(job: DeliveryJob): void {
        if (this.keys.has(keyOf(job))) {
            if (this.random() < 0.5) {
                this.keys.delete(keyOf(job));
            } else {
                this.later({ ...job, reservation: null }, STALLED);
            }
        }
    }

    private work(collector: string, worker: Worker): QueueWorker {
        this.workers.set(collector, [...(this.workers.get(collector) ?? []), worker]);
        this.deal(collector);
        return {
            close: async () => {
                worker.open = false;
                await worker.inHand.close();
            },
        };
    }
}

function keyOf({ deliveryId, attempt, reservation, left = 0 }: DeliveryJob): string {
    return `${deliveryId}/${attempt}/${reservation?.token ?? ''}/${left}`;
}

/** For the trace, without the token, which a database draws again each time. */
function nameOf({ deliveryId, attempt }: DeliveryJob): string {
    return `${deliveryId.slice(-4)}/${attempt}`;
}
