import { randomBytes } from 'node:crypto';
import type { Test } from 'tap';
import { memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { type KeyRing, keyRing } from '../../lib/keys/key-ring.ts';
import type { DeliveryState } from '../../lib/webhooks/deliveries/delivery-states.ts';
import type { DeliveryQueue, QueueWorker } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import type { InvestigationCreated } from '../../lib/webhooks/events/event-body-types.ts';
import type { WebhooksOptions } from '../../lib/webhooks/options.ts';
import { codeOfStatus } from '../../lib/webhooks/outcomes/attempt-result.ts';
import { newProgress, type OutcomeCode, outcomeOf } from '../../lib/webhooks/outcomes/outcome.ts';
import type { Message, Sender } from '../../lib/webhooks/sending/http-sender.ts';
import { type Webhooks, webhooks } from '../../lib/webhooks/webhooks.ts';
import { type SimulatedTime, simulatedTime } from './simulated-time.ts';

/** A POST as a receiver sees it; `test` events are not among them. */
export interface Post {
    /** Milliseconds since time began. */
    readonly at: number;
    readonly exporterId: string;
    readonly url: string;
    /** What tells one event from another. */
    readonly title: string;
    /** Name of the process that sends it. */
    readonly by: string;
}

/** What becomes of a POST. */
export interface Answer {
    /** The HTTP status, or why there was none. */
    readonly result: number | OutcomeCode;
    /** `Retry-After` in milliseconds. */
    readonly retryAfter?: number;
    /** Milliseconds until it comes; 50 by default. */
    readonly after?: number;
}

/** A process of the deployment that sends for the collector `default`. */
export interface SimulatedProcess extends Webhooks {
    readonly errors: Error[];
    /** From now on it does nothing more, and nothing of it ends. */
    kill(): void;
}

/** Stores of a simulated deployment. */
export type SimulatedStores = Pick<WebhooksOptions, 'exporters' | 'deliveries' | 'settings'>;

/** Which processes there are, of which store and queue are one; the memory store's time is the simulated one. */
export interface SimulatedDeployment extends SimulatedTime {
    readonly stores: SimulatedStores;
    readonly posts: Post[];
    readonly keys: KeyRing;
    /** How the receivers answer; 204 by default. */
    receive: (post: Post) => Answer;
    /** The store throws `UNAVAILABLE` whatever it is asked. */
    storeIsAway: boolean;
    start(name: string, options?: Partial<WebhooksOptions>): Promise<SimulatedProcess>;
    /** An exporter that runs, and its id. */
    exporter(process: Webhooks): Promise<string>;
    /** So many events, of titles `1`, `2` …; resolves with the ids of their deliveries. */
    publish(process: Webhooks, count: number): Promise<readonly string[]>;
    /** How many deliveries are in each state. */
    states(): Promise<Partial<Record<DeliveryState, number>>>;
}

/**
 * No process of which ever sees the clock of the machine.
 *
 * @param given Stores in place of those in memory, whose answers take no time, and whose clock goes as that of the deployment.
 */
export function simulatedDeployment(t: Test, given?: SimulatedStores): SimulatedDeployment {
    const time = simulatedTime(t);
    const stores = given ?? memoryWebhooks({ clock: () => new Date(START + time.now()) });
    const queue = memoryQueue();
    const self: SimulatedDeployment = {
        ...time,
        stores,
        posts: [],
        keys: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        receive: () => ({ result: 204 }),
        storeIsAway: false,

        async start(name, options) {
            let dead = false;
            const workers: QueueWorker[] = [];
            const errors: Error[] = [];
            const reach = async (): Promise<void> => {
                if (dead) {
                    await NEVER;
                }
                if (self.storeIsAway) {
                    throw new ScanwireError('UNAVAILABLE', 'The store is away');
                }
            };
            const process = webhooks({
                exporters: behind(reach, stores.exporters),
                deliveries: behind(reach, stores.deliveries),
                settings: behind(reach, stores.settings),
                queue: distant(queue, time, workers),
                keyRing: self.keys,
                guard: egressGuard({ allow: ['127.0.0.0/8'] }),
                sender: simulatedSender(self, name),
                monotonic: time.now,
                sleep: time.sleep,
                random: () => 0.5,
                onError: (error) => errors.push(error),
                window: WINDOW,
                ...options,
            });
            await process.start();
            await process.work(['default']);
            const kill = (): void => {
                dead = true;
                for (const worker of workers) {
                    void worker.close();
                }
            };
            return { ...process, errors, kill };
        },

        async exporter({ exporters }) {
            const { exporter } = await exporters.create({ url: 'http://127.0.0.1/' });
            await time.finish(exporters.start(exporter.id));
            return exporter.id;
        },

        async publish({ publish }, count) {
            const titles = Array.from({ length: count }, (_, index) => String(index + 1));
            const accepted = await Promise.all(titles.map((title) => publish('idr_investigation_created', { ...INVESTIGATION, title })));
            return accepted.flatMap(({ deliveries }) => deliveries);
        },

        async states() {
            const listed = (await stores.deliveries.list({ limit: 10_000 })).filter(({ kind }) => kind !== 'test');
            const counts: Partial<Record<DeliveryState, number>> = {};
            for (const { state } of listed) {
                counts[state] = (counts[state] ?? 0) + 1;
            }
            return counts;
        },
    };
    return self;
}

/** A process `first` whose 50 attempts are in flight, all that the window holds; what another one sends is answered. */
export async function fullWindow(t: Test, deployment: SimulatedDeployment, options?: Partial<WebhooksOptions>): Promise<SimulatedProcess> {
    const first = await deployment.start('first', options);
    await deployment.exporter(first);
    deployment.receive = ({ by }) => ({ result: 204, after: by === 'first' ? 8_000 : 50 });
    await deployment.publish(first, 60);
    await deployment.advance(1_000);
    t.strictSame(await deployment.states(), { pending: 10, sending: 50 });
    return first;
}

/** The store's time when time begins. */
export const START: number = Date.parse('2026-11-21T00:00:00Z');
const NEVER = new Promise<never>(() => undefined);
const LATENCY = 50;
/** Less than by default, so that a few deliveries fill it. */
const WINDOW = 50;

/** Body of an event, but for its title. */
export const INVESTIGATION: Omit<InvestigationCreated, 'title'> = {
    timestamp: '2026-11-21T09:30:00Z',
    link: 'https://example.com/i/1',
    investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
    investigationRrn: 'rrn:investigation:eu:1:investigation:ABC',
    actors: { users: [], assets: [] },
};

/** The store as a process reaches it. */
function behind<Store extends object>(reach: () => Promise<void>, store: Store): Store {
    const methods = Object.entries(store).map(([name, method]) => {
        return typeof method !== 'function' ? [name, method] : [name, (...args: unknown[]) => reach().then(() => method(...args))];
    });
    return Object.fromEntries(methods);
}

/** A job takes a millisecond to get to its worker, so that no attempt begins at the moment at which another one ends. */
function distant(queue: DeliveryQueue, { sleep }: SimulatedTime, workers: QueueWorker[]): DeliveryQueue {
    return {
        ...queue,

        async add(jobs) {
            await sleep(1);
            await queue.add(jobs);
        },

        async work(...args) {
            const worker = await queue.work(...args);
            workers.push(worker);
            return worker;
        },
    };
}

function simulatedSender(deployment: SimulatedDeployment, by: string): Sender {
    return {
        attemptTimeout: 15_000,
        close: async () => undefined,

        async send({ exporterId, url, body, newConnection }: Message) {
            if (newConnection === true) {
                await deployment.sleep(LATENCY);
                return outcomeOf({ code: 'delivered', status: 204, detail: 'Answered 204', retryAfter: null }, newProgress(), LATENCY);
            }

            const post = { at: deployment.now(), exporterId, url, title: JSON.parse(Buffer.from(body).toString()).title, by };
            deployment.posts.push(post);
            const { result, retryAfter = null, after = LATENCY } = deployment.receive(post);
            await deployment.sleep(after);
            const [code, status] = typeof result === 'number' ? [codeOfStatus(result), result] : [result, null];
            return outcomeOf({ code, status, detail: `Simulated ${result}`, retryAfter }, newProgress(), after);
        },
    };
}

/** Counts how often dispatch looks for what is due, in all processes. */
export function countedLooks({ stores: { deliveries } }: SimulatedDeployment): { count: number } {
    const { dispatch } = deliveries;
    const looks = { count: 0 };
    Object.assign(deliveries, {
        dispatch: (...options: Parameters<typeof dispatch>) => {
            looks.count += 1;
            return dispatch(...options);
        },
    });
    return looks;
}
