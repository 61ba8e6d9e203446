import { steadyClock } from '../../lib/clock.ts';
import type { ExporterChanges } from '../../lib/webhooks/exporters/exporter-patch.ts';
import type { WebhookStores } from '../../lib/webhooks/options.ts';
import { seeded } from '../support/seeded.ts';
import { OWN_HEADER } from './exporter-model.ts';
import type { HostTransaction } from './host-transaction.ts';
import { Ledger } from './ledger.ts';
import { Receivers } from './receivers.ts';
import { ReplayLedger } from './replay-ledger.ts';
import { ATTEMPT_TIMEOUT, SimulatedProcess, type Surroundings, VARIANTS, type Variant } from './simulated-process.ts';
import { SimulatedQueue } from './simulated-queue.ts';
import { START, Timeline } from './timeline.ts';
import { watched } from './watched-stores.ts';
import { Weather } from './weather.ts';
import { WireLedger } from './wire-ledger.ts';

/** Empty stores for one simulation, whose time is that of the timeline. */
export type MakeStores = (timeline: Timeline) => Promise<SimulatedStores>;

/** The stores of a simulation, with transactions of the application where there can be any. */
export interface SimulatedStores extends WebhookStores {
    readonly begin?: () => HostTransaction;
}

/** Replaces parts by ones that have a fault: `below` what the ledger sees as the truth, or `above` it, on the side of the engine. */
export interface Mutant {
    readonly below?: (stores: WebhookStores, timeline: Timeline) => WebhookStores;
    readonly above?: (surroundings: Surroundings) => Partial<Surroundings>;
}

/** What a deployment comes out of. */
export interface Seed {
    readonly seed: number;
    /** Whether it draws a rate for the deployment, and for exporters. */
    readonly rated: boolean;
}

/** Deliveries a second, null for any number. */
interface Rates {
    readonly deployment: number | null;
    readonly exporters: readonly (number | null)[];
}

/** A replay of many deliveries. Times in milliseconds. */
export interface ManyReplayed {
    /** Deliveries a second. */
    readonly rate: number;
    /** For how long what is replayed has been failing; null for what is held. */
    readonly failedFor: number | null;
    /** When it is cancelled, if it goes on for so long. */
    readonly cancelAfter: number | null;
}

/** For how many milliseconds a process that died is away. */
const RESTART = { least: 200, more: 8_000 } as const;

/** A stop takes at most so many milliseconds. */
const STOP_TIMEOUT = 20_000;

/** Milliseconds in which everything is ready that is started when all is well. */
const SET_UP_WITHIN = 60_000;

/** Attempts that a process makes at once: with few of them, exporters wait for each other. */
const CONCURRENCIES = [1, 2, 3, 200] as const;

/** How many exporters there are; the receiver of the first never does anything wrong. */
export const EXPORTERS = 3;

/** Which of them is ordered. */
export const ORDERED = 2;

/** Which of them gets events in a format of its own. */
const FORMATTED = 1;

/** For whom processes send; an exporter belongs to one of them. The first process sends for all. */
const COLLECTORS = ['default', 'other'] as const;

/** A change of an exporter; of its URL the path. */
type Change = Omit<ExporterChanges, 'url'> & { readonly path?: string };

/** What exporters may be changed to. */
export const CHANGES: readonly Change[] = [
    { secret: 'another secret' },
    { secret: 'first secret' },
    { headers: [[OWN_HEADER, 'another value']], schedule: [1_000, 3_000, 60_000] },
    { headers: [], schedule: [2_000, 5_000, 15_000, 40_000, 90_000] },
    { path: 'moved' },
    { rate: 1 },
    { rate: 5 },
    { rate: null },
    { collector: COLLECTORS[0] },
    { collector: COLLECTORS[1] },
];

/** Who notices that the settings are others by now goes on for at most so many milliseconds before it is started again. */
const OUTDATED = 5_000;

/** Where processes run. One that dies there is started again. */
export const PLACES = ['a', 'b', 'c'] as const;

const KIND = 'idr_investigation_created';

const INVESTIGATION = {
    timestamp: '2026-11-21T09:30:00Z',
    link: 'https://example.com/i/1',
    investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
    investigationRrn: 'rrn:investigation:eu:1:investigation:ABC',
    actors: { users: [], assets: [] },
};

/** A generator of ids that are the same each time. */
export function idsFrom(group: string): () => string {
    let count = 0;
    return () => {
        count += 1;
        return `00000000-0000-4000-${group}-${count.toString(16).padStart(12, '0')}`;
    };
}

/** Processes, stores, queue, receivers and all between them. */
export class Deployment {
    readonly timeline: Timeline;
    readonly weather: Weather;
    readonly queue: SimulatedQueue;
    readonly receivers: Receivers;
    readonly ledger: Ledger;
    /** In the order in which they were made. */
    readonly exporterIds: string[] = [];
    /** All that ever were, by name. */
    private readonly processes = new Map<string, SimulatedProcess>();
    /** What ran last in each place. */
    private readonly places = new Map<string, SimulatedProcess>();
    /** Places where a process is wanted. */
    private readonly wanted = new Set<string>();
    private readonly replays: ReplayLedger;
    private readonly stores: WebhookStores;
    private readonly begin: (() => HostTransaction) | undefined;
    private readonly surroundings: Surroundings;
    private readonly random: () => number;
    private readonly concurrency: number;
    /** For which collectors the process in each place sends. */
    private readonly collectors: Readonly<Record<(typeof PLACES)[number], readonly string[]>>;
    /** With which settings processes are started. */
    private variant = 0;
    private incarnations = 0;
    private titles = 0;
    /** Of the deployment, and of each exporter at its beginning. */
    private readonly rates: Rates;

    private constructor(seed: Seed, timeline: Timeline, { begin, ...stores }: SimulatedStores, mutant: Mutant) {
        const random = seeded(seed.seed);
        this.rates = ratesOf(seed);
        this.random = random;
        this.concurrency = CONCURRENCIES[Math.floor(random() * CONCURRENCIES.length)] as number;
        this.collectors = { a: COLLECTORS, b: random() < 0.5 ? COLLECTORS : [COLLECTORS[0]], c: [COLLECTORS[1]] };
        this.begin = begin;
        this.timeline = timeline;
        this.weather = new Weather(timeline);
        this.queue = new SimulatedQueue(timeline, this.weather, random);
        this.ledger = new Ledger(timeline, this.processes, this.weather.troubled, this.rates.deployment);
        this.receivers = new Receivers(timeline, this.weather, random, new WireLedger(this.ledger));
        this.replays = new ReplayLedger(this.ledger);
        this.stores = watched(mutant.below?.(stores, timeline) ?? stores, this.ledger, this.replays);
        const honest: Surroundings = {
            timeline,
            weather: this.weather,
            random,
            newId: idsFrom('8000'),
            stores: this.stores,
            engineSees: (stores) => stores,
            queueFor: (process) => this.queue.for(process),
            clockOf: (clocks) => steadyClock(clocks).now,
            senderFor: (process) => this.receivers.senderFor(process),
            onOutdated: (process) => this.replace(process),
            onFault: ({ name }, error) => this.ledger.violate(`${name} fails by itself: ${error}`),
            onDeath: (process) => this.startAgain(process, RESTART.least + RESTART.more * random()),
            isAlive: (name) => this.processes.get(name)?.alive === true,
        };
        this.surroundings = { ...honest, ...mutant.above?.(honest) };
    }

    /** A deployment in which nothing runs yet. */
    static async open(seed: Seed, makeStores: MakeStores, mutant: Mutant = {}): Promise<Deployment> {
        const timeline = new Timeline();
        return new Deployment(seed, timeline, await makeStores(timeline), mutant);
    }

    /** Starts processes and exporters. */
    async setUp(): Promise<void> {
        this.start('a');
        this.start('b');
        await this.timeline.advance(100);
        for (let index = 0; index < EXPORTERS; index += 1) {
            this.manage((engine) => this.makeExporter(engine, index));
            if (!(await this.timeline.until(() => this.exporterIds.length > index, SET_UP_WITHIN, 10))) {
                throw new Error('An exporter has not been started');
            }
        }
        await this.timeline.advance(100);
    }

    /** Those that live, by the names of their places. */
    running(): readonly (readonly [place: string, process: SimulatedProcess])[] {
        return [...this.places].flatMap(([place, process]) => (process.alive ? [[place, process] as const] : []));
    }

    /** What runs in a place, if anything does. */
    at(place: string): SimulatedProcess | null {
        const process = this.places.get(place);
        return process?.alive === true ? process : null;
    }

    /** Starts a process where none runs, now or when the one that stops has ended. */
    start(place: string): void {
        this.wanted.add(place);
        if (this.at(place) !== null) {
            return;
        }

        this.incarnations += 1;
        const options = {
            name: `${place}${this.incarnations}`,
            variant: VARIANTS[this.variant] as Variant,
            collectors: this.collectors[place as (typeof PLACES)[number]],
            concurrency: this.concurrency,
            rate: this.rates.deployment,
        };
        const process = new SimulatedProcess(options, this.surroundings);
        this.places.set(place, process);
        this.processes.set(process.name, process);
        this.as(process, async () => {
            try {
                await process.run();
            } catch (error) {
                // As a command that ends with an error, to be started again.
                this.timeline.note(`cannot start: ${(error as Error).message}`);
                process.kill();
            }
        });
    }

    /** Tells a process to stop, after which another takes its place if `again` says so. */
    stop(place: string, again: boolean): void {
        if (!again) {
            this.wanted.delete(place);
        }
        const process = this.at(place);
        if (process === null || Number.isFinite(process.drainsUntil)) {
            return;
        }

        process.drainsUntil = this.timeline.now + STOP_TIMEOUT;
        this.timeline.note(`${process.name} stops`);
        this.as(process, async () => {
            await process.engine.close({ timeout: STOP_TIMEOUT });
            this.timeline.note(`${process.name} has stopped`);
            process.end();
            this.startAgain(process, 1);
        });
    }

    /** Processes that are started from now on have other settings. */
    changeSettings(): void {
        this.variant = (this.variant + 1) % VARIANTS.length;
    }

    /** Changes an exporter as one of {@link CHANGES} says. */
    change(index: number, { path, ...others }: Change): void {
        const changes = { ...others, ...(path !== undefined && { url: `http://${hostOf(index)}/${path}` }) };
        this.manageExporter(index, ({ exporters }, id) => exporters.update(id, changes));
    }

    /** Has a process change an exporter or its state, and holds it to what it answers. */
    manageExporter(index: number, what: (engine: SimulatedProcess['engine'], id: string) => Promise<unknown>): void {
        const id = this.exporterIds[index] as string;
        this.manage(async (engine) => await this.ledger.exporters.get(id)?.asked(() => what(engine, id)));
    }

    /** Has what an exporter was sent in vain, or what it holds, replayed. */
    replayMany(index: number, { rate, failedFor, cancelAfter }: ManyReplayed): void {
        this.manage(async ({ deliveries: { replays } }) => {
            const failedSince = { failedSince: new Date(START + this.timeline.now - (failedFor ?? 0)) };
            const chosen = failedFor === null ? { held: true as const } : failedSince;
            const { id } = await replays.begin({ exporterId: this.exporterIds[index] as string, rate, ...chosen });
            if (cancelAfter !== null) {
                await new Promise<void>((resolve) => this.timeline.after(cancelAfter, resolve));
                await replays.cancel(id);
            }
        });
    }

    /** Publishes an event through a process that runs, if one does. */
    publish(title: string = `${++this.titles}`): void {
        this.publishes(async ({ engine }) => {
            this.ledger.promise(await engine.publish(KIND, { ...INVESTIGATION, title }, this.keyed()));
        });
    }

    /** Publishes so many events in one statement: there are all of them, or none. */
    publishTogether(count: number): void {
        const events = Array.from({ length: count }, () => {
            const title = `${++this.titles}`;
            return { kind: KIND, body: { ...INVESTIGATION, title }, ...this.keyed() };
        });
        this.publishes(async ({ engine }) => {
            for (const published of await engine.publishAll(events)) {
                this.ledger.promise(published);
            }
        });
    }

    /** Publishes an event in a transaction that ends after so many milliseconds, and with the process that has begun it. */
    publishIn({ milliseconds, commits }: { readonly milliseconds: number; readonly commits: boolean }): void {
        const title = `${++this.titles}`;
        const { begin } = this;
        if (begin === undefined) {
            return;
        }

        this.publishes(async (process) => {
            const { tx, end } = begin();
            process.onDeath(() => void this.timeline.real(() => end(false)));
            try {
                const published = await process.engine.publish(KIND, { ...INVESTIGATION, title }, { ...this.keyed(), tx });
                const { eventId } = published;
                this.ledger.withhold(eventId);
                await new Promise<void>((resolve) => this.timeline.after(milliseconds, resolve, process));
                await process.call('store', commits ? 'commit' : 'roll back', async () => {
                    await end(commits);
                    await this.ledger.ended(eventId, commits, this.stores.deliveries);
                });
                if (commits) {
                    process.hear();
                    this.ledger.promise(published);
                }
            } catch (error) {
                await this.timeline.real(() => end(false));
                throw error;
            }
        });
    }

    /** Three of eight events have one of two order keys. */
    private keyed(): { readonly orderKey?: string } {
        const orderKey = ({ 2: 'a', 3: 'a', 6: 'b' } as Readonly<Record<number, string>>)[this.titles % 8];
        return orderKey === undefined ? {} : { orderKey };
    }

    private publishes(act: (process: SimulatedProcess) => Promise<void>): void {
        const alive = this.running().filter(([, { drainsUntil }]) => !Number.isFinite(drainsUntil));
        const [, process] = alive[Math.floor(this.random() * alive.length)] ?? [];
        if (process !== undefined) {
            this.as(process, () => act(process).catch((error: Error) => this.timeline.note(`not published: ${error.message}`)));
        }
    }

    /** Has a process do something with the exporters, and does not wait for it. */
    manage(what: (engine: SimulatedProcess['engine']) => Promise<unknown>): void {
        const [[, process] = []] = this.running();
        if (process !== undefined) {
            this.as(process, () => what(process.engine).catch((error: Error) => this.timeline.note(`refused: ${error.message}`)));
        }
    }

    /** Starts all exporters that do not run, whoever or whatever has stopped them, and has none hold a key. */
    startExporters(): void {
        for (const id of this.exporterIds) {
            const model = this.ledger.exporters.get(id);
            if (model?.removed === false && !model.running) {
                this.manage(({ exporters }) => exporters.start(id));
            }
            if (model?.removed === false && model.holdsKeys) {
                this.manage(({ exporters }) => exporters.update(id, { afterExhausted: 'skip' }));
            }
        }
    }

    /** Where all have but one slot, each delivery to an exporter may wait for an attempt to another. Milliseconds. */
    turnsOfOthers(exporterId: string | undefined): number {
        return this.concurrency === 1 ? ATTEMPT_TIMEOUT * this.ledger.open(exporterId).length : 0;
    }

    /** For how many milliseconds at most the rate of the deployment keeps waiting what is open, tried a few times each, and so many more. */
    turnsOfRate(more = 0): number {
        const { deployment: rate } = this.rates;
        return rate === null ? 0 : (1_000 * (4 * this.ledger.open().length + more)) / rate;
    }

    /** Whether an event would be tried at once by all exporters: where nothing has been sent for a while, a breaker may still be open. */
    hasRoom(): boolean {
        return [...this.ledger.exporters.values()].every((model) => model.removed || model.room(this.timeline.now, 1) > 0);
    }

    /** Whether nothing more is handed out by itself. */
    isDone(): boolean {
        return !this.replays.anyGoesOn();
    }

    /** Who looks at the rows without a process. */
    async audit(): Promise<void> {
        await this.ledger.audit(this.stores);
        await this.replays.audit(this.stores.deliveries);
    }

    private as(process: SimulatedProcess, act: () => Promise<unknown>): void {
        const failed = (error: unknown): void => {
            // The clock of a dead process is the one part of it that has to throw.
            if (process.alive) {
                throw error;
            }
        };
        this.timeline.after(0, () => void act().catch(failed), process);
    }

    /** Some time after it has noticed that it has become a process of yesterday. */
    private replace(process: SimulatedProcess): void {
        this.timeline.note(`${process.name} is outdated`);
        const again = (): void => {
            for (const [place, current] of this.places) {
                if (current === process && process.alive) {
                    this.stop(place, true);
                }
            }
        };
        this.timeline.after(OUTDATED * this.random(), again, null);
    }

    private startAgain(process: SimulatedProcess, delay: number): void {
        const [[place] = []] = [...this.places].filter(([, current]) => current === process);
        const start = (): void => {
            if (place !== undefined && this.wanted.has(place)) {
                this.start(place);
            }
        };
        this.timeline.after(delay, start, null);
    }

    private async makeExporter({ exporters }: SimulatedProcess['engine'], index: number): Promise<void> {
        const url = `http://${hostOf(index)}/`;
        const { exporter } = await exporters.create({
            url,
            schedule: [2_000, 5_000, 15_000, 40_000, 90_000],
            secret: 'first secret',
            headers: [[OWN_HEADER, 'a value']],
            collector: COLLECTORS[index % COLLECTORS.length] as string,
            signatures: ['base64', 'standard-webhooks'],
            ordered: index === ORDERED,
            rate: this.rates.exporters[index] ?? null,
            ...(index === FORMATTED && { format: 'cloudevents' }),
        });
        await exporters.start(exporter.id);
        this.exporterIds.push(exporter.id);
    }
}

/** The rates that a seed draws, beside all else that it draws. Only the exporter that nobody touches has none. */
function ratesOf({ seed, rated }: Seed): Rates {
    const random = seeded(seed * 2 + 1);
    const drawn = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
    return rated
        ? {
              deployment: drawn([1, 3, 10]),
              exporters: Array.from({ length: EXPORTERS }, (_, index) => (index === 0 ? null : drawn([null, null, 1, 5]))),
          }
        : { deployment: null, exporters: [] };
}

/** The host of an exporter's receiver. */
export function hostOf(index: number): string {
    return `receiver-${index}.example.com`;
}
