import type { MachineClocks } from '../../lib/clock.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { type KeyRing, keyRing } from '../../lib/keys/key-ring.ts';
import type { DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import type { Outlook } from '../../lib/webhooks/dispatching/outlook.ts';
import type { Session } from '../../lib/webhooks/dispatching/worker-session.ts';
import type { WebhookStores, WebhooksOptions } from '../../lib/webhooks/options.ts';
import type { Sender } from '../../lib/webhooks/sending/http-sender.ts';
import { type Webhooks, webhooks } from '../../lib/webhooks/webhooks.ts';
import { seeded } from '../support/seeded.ts';
import type { Owner, Timeline } from './timeline.ts';
import { passage, unavailable, type Weather } from './weather.ts';

/** What differs between the settings that a deployment has one after the other. */
export interface Variant {
    readonly vendor: string;
    /** Deliveries of one exporter in flight: few, so that a short run gets there. */
    readonly window: number;
}

export const VARIANTS: readonly [Variant, Variant] = [
    { vendor: 'Vendor', window: 4 },
    { vendor: 'Acme', window: 3 },
];

/** Failures that open a breaker, and so on: small as well. */
export const SETTINGS: Required<Pick<WebhooksOptions, 'breakerAfter' | 'stopAfter' | 'keepFor'>> = {
    breakerAfter: 3,
    stopAfter: 30 * 60_000,
    // Retention goes by the machine's own timers.
    keepFor: null,
};

/** Milliseconds. */
export const ATTEMPT_TIMEOUT = 15_000;

/** Parts of stores that are stores themselves. */
const PARTS: ReadonlySet<string> = new Set(['replays', 'retention']);

/** Milliseconds. */
const COMMIT_HEARD_AFTER = 2;

/** Every second process listens for commits; the others look for what was accepted each second. */
function listens(name: string): boolean {
    return name.charCodeAt(name.length - 1) % 2 === 0;
}

/** No process has this id. */
const DEAD_PID = 2 ** 30;

/** Seals what is secret. */
export const KEYS: KeyRing = keyRing({ current: 'k', keys: { k: Buffer.alloc(32, 7) } });
const GUARD = egressGuard({ allow: ['127.0.0.0/8'] });

/** What a process works with. */
export interface Surroundings {
    readonly timeline: Timeline;
    readonly weather: Weather;
    readonly random: () => number;
    readonly newId: () => string;
    readonly stores: WebhookStores;
    /** Comes between an engine and its way to the stores. */
    readonly engineSees: (stores: WebhookStores) => WebhookStores;
    readonly queueFor: (process: SimulatedProcess) => DeliveryQueue;
    readonly senderFor: (process: SimulatedProcess) => Sender;
    /** Milliseconds of a process's own, made of what its machine says. */
    readonly clockOf: (clocks: MachineClocks) => () => number;
    /** A process has other settings than its deployment by now. */
    readonly onOutdated: (process: SimulatedProcess) => void;
    /** A process has met an error that is not one of those that weather makes. */
    readonly onFault: (process: SimulatedProcess, error: unknown) => void;
    /** A process has died. */
    readonly onDeath: (process: SimulatedProcess) => void;
    readonly isAlive: (name: string) => boolean;
}

const NEVER = new Promise<never>(() => undefined);

/** How a process is started. */
export interface ProcessOptions {
    readonly name: string;
    readonly variant: Variant;
    /** For which it sends. */
    readonly collectors: readonly string[];
    /** Attempts at once, for each of them. */
    readonly concurrency: number;
    /** Of the deployment. */
    readonly rate: number | null;
}

/** A process with an engine of its own. Whatever it calls may be the last that it does. */
export class SimulatedProcess implements Owner {
    readonly name: string;
    readonly variant: Variant;
    readonly collectors: readonly string[];
    readonly concurrency: number;
    alive = true;
    frozenUntil = 0;
    /** Milliseconds for which its machine is suspended, up to {@link frozenUntil}. */
    private asleep = 0;
    readonly clockOffset: number;
    readonly engine: Webhooks;
    /** Until when it finishes what it has begun, once it was told to stop; infinite before. */
    drainsUntil: number = Number.POSITIVE_INFINITY;
    /** It dies at the call after so many more. */
    private callsLeft: number = Number.POSITIVE_INFINITY;
    private dieAfterEffect = false;
    private heard = (): void => {};
    private commits = 0;
    private readonly atDeath: (() => void)[] = [];
    private readonly surroundings: Surroundings;

    constructor({ name, variant, collectors, concurrency, rate }: ProcessOptions, surroundings: Surroundings) {
        const { timeline, random, newId, stores, engineSees, queueFor, senderFor, clockOf } = surroundings;
        this.name = name;
        this.variant = variant;
        this.collectors = collectors;
        this.concurrency = concurrency;
        this.surroundings = surroundings;
        this.clockOffset = Math.floor((random() - 0.5) * 7_200_000);
        const started = this.clockOffset - timeline.now;
        const wall = (): number => timeline.now + started;
        const awake = clockOf({ running: () => wall() - this.slept(), wall, uptime: () => timeline.now });
        const own = seeded(Math.floor(random() * 2 ** 31));
        this.engine = webhooks({
            ...SETTINGS,
            ...variant,
            rate,
            ...engineSees({
                exporters: this.behind(stores.exporters),
                deliveries: { ...this.behind(stores.deliveries), ...this.sessions(stores), ...(listens(name) && this.listening()) },
                settings: this.behind(stores.settings),
            }),
            queue: queueFor(this),
            sender: senderFor(this),
            keyRing: KEYS,
            guard: GUARD,
            newId,
            random: own,
            monotonic: () => {
                this.clockCall();
                return awake();
            },
            sleep: (milliseconds) => new Promise((resolve) => this.ifAlive(() => timeline.after(milliseconds, resolve, this))),
            onError: (error) => {
                timeline.note(`error: ${error.message}`);
                if (this.alive && !(error instanceof ScanwireError)) {
                    surroundings.onFault(this, error);
                }
            },
            onOutdated: () => surroundings.onOutdated(this),
        });
    }

    /** It hears of a commit of its own, but for each third, whose notification is lost. */
    hear(): void {
        this.commits += 1;
        if (this.commits % 3 !== 0) {
            this.surroundings.timeline.after(COMMIT_HEARD_AFTER, () => this.heard(), this);
        }
    }

    private listening(): Required<Pick<WebhookStores['deliveries'], 'listen'>> {
        return {
            listen: (heard) => {
                this.heard = heard;
                const close = async (): Promise<void> => {
                    this.heard = (): void => {};
                };
                return { ready: Promise.resolve(), isListening: () => true, close };
            },
        };
    }

    /** Starts and sends, until it is told otherwise. */
    async run(): Promise<void> {
        await this.engine.start();
        await this.engine.work(this.collectors, { concurrency: this.concurrency });
    }

    /** Dies at the call after so many more, before it gets there or when it has had its effect. */
    dieAt(call: number, afterEffect: boolean): void {
        this.callsLeft = call;
        this.dieAfterEffect = afterEffect;
    }

    /** From now on it does nothing more, and nothing of it ends. */
    kill(): void {
        if (this.alive) {
            this.surroundings.timeline.note(`${this.name} dies`);
            this.end();
            this.surroundings.onDeath(this);
        }
    }

    /** The same for one that was told to. */
    end(): void {
        this.alive = false;
        for (const act of this.atDeath.splice(0)) {
            act();
        }
    }

    /** What happens when it has ended, however that came about. */
    onDeath(act: () => void): void {
        this.atDeath.push(act);
    }

    /** Stands still for so many milliseconds, every second time because its machine is suspended, whose clock stands still too. */
    freeze(milliseconds: number): void {
        const { now } = this.surroundings.timeline;
        const before = Math.max(this.frozenUntil, now);
        this.frozenUntil = Math.max(before, now + milliseconds);
        this.asleep += milliseconds % 2 === 0 ? this.frozenUntil - before : 0;
    }

    /** Milliseconds for which its machine has been suspended by now. */
    private slept(): number {
        return Math.max(0, this.asleep - Math.max(0, this.frozenUntil - this.surroundings.timeline.now));
    }

    /** A call of the process to a part: it gets there, has its effect and is answered later, or not. */
    async call<T>(part: 'store' | 'queue', what: string, effect: () => Promise<T>): Promise<T> {
        const { timeline, weather, random } = this.surroundings;
        const dies = this.nextCallIsLast();
        timeline.note(`${part}.${what}`);
        if (!this.alive || (dies && !this.dieAfterEffect)) {
            this.kill();
            return await NEVER;
        }

        const queueFault = weather.ofQueue(this.name) === 'refuses' ? 'refuses' : null;
        const { there, back, lost } = passage(part === 'store' ? weather.ofStore(this.name) : queueFault, random);
        return await new Promise<T>((resolve, reject) => {
            const refuse = (): void => reject(unavailable(part));
            const reach = (): void => {
                if (lost === 'call') {
                    timeline.after(back, refuse, this);
                    return;
                }

                const answered = (act: () => void): void => {
                    if (dies) {
                        this.kill();
                    }
                    timeline.after(back, act, this);
                };
                void timeline.real(effect).then(
                    (value) => answered(lost === null ? () => resolve(value) : refuse),
                    (error) => answered(lost === null ? () => reject(error) : refuse),
                );
            };
            timeline.after(there, reach, null);
        });
    }

    /** Whether the call that is being made is the last: then it never returns. For parts whose effects are not calls of a moment. */
    nextCallIsLast(): boolean {
        this.callsLeft -= 1;
        return this.callsLeft < 0;
    }

    /** A clock has no other end of which it could be said whether the call got there. */
    private clockCall(): void {
        if (this.nextCallIsLast()) {
            this.kill();
        }
        if (!this.alive) {
            throw new Error('The process is dead');
        }
    }

    private ifAlive(act: () => void): void {
        if (this.alive) {
            act();
        }
    }

    private behind<Store extends object>(store: Store): Store {
        const methods = Object.entries(store).map(([name, method]) => {
            const reached = (...args: unknown[]): unknown => this.call('store', name, () => method(...args));
            return [name, typeof method === 'function' ? reached : PARTS.has(name) ? this.behind(method) : method];
        });
        return Object.fromEntries(methods);
    }

    /** All processes of the simulation are one to the machine: which of them runs is seen by other ids. */
    private sessions({ deliveries }: WebhookStores): Pick<WebhookStores['deliveries'], 'keepAlive' | 'sessions'> {
        return {
            keepAlive: async (session, duration, begun, tell) => {
                const own = { ...session, process: JSON.stringify({ name: this.name, identity: session.process }) };
                let told: Outlook | undefined;
                const now = await this.call('store', 'keepAlive', () => {
                    return deliveries.keepAlive(own, duration, begun, (outlook) => {
                        told = outlook;
                    });
                });
                // It comes with the answer, and not before that.
                if (told !== undefined) {
                    tell?.(told);
                }
                return now;
            },
            sessions: (options) =>
                this.call('store', 'sessions', async () => (await deliveries.sessions(options)).map((session) => this.seen(session))),
        };
    }

    private seen<Seen extends Pick<Session, 'id' | 'process'>>(session: Seen): Seen {
        const { name, identity } = JSON.parse(session.process);
        const process = this.surroundings.isAlive(name) ? identity : JSON.stringify({ ...JSON.parse(identity), pid: DEAD_PID });
        return { ...session, process };
    }
}
