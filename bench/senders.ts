import assert from 'node:assert';
import type { TlsOptions } from 'node:tls';
import { Pool } from 'undici';
import type { Credentials } from '../test/support/certificates.ts';
import type { Checkout } from './checkout.ts';
import { cpuTimes, serverProcesses } from './cpu-time.ts';
import { background } from './processes.ts';
import type { Figure, Figures } from './section.ts';
import { emptyStore, type SenderStore, type StoreNeeds } from './sender-store.ts';
import { ask, contender, type StartedSender, served } from './started-sender.ts';

/** A sender in a process of its own, with a receiver in another that gets all it sends. Counts are of deliveries, but for `burst`. */
export interface SenderUnderTest extends Omit<StartedSender, 'stop'> {
    readonly store: Omit<SenderStore, 'remove'>;
    /**
     * Resolves when so many have arrived since the last call, with the time of each event's last one in microseconds by id where that is
     * asked for. Says on stderr when something arrived twice, as it may. @throws Error when more arrived.
     */
    arrived(count: number, options?: { readonly times?: boolean }): Promise<ReadonlyMap<string, number>>;
    /** The same once the outcomes are recorded, too. */
    finished(count: number, options?: { readonly times?: boolean }): Promise<ReadonlyMap<string, number>>;
    /** CPU time so far, in microseconds, of the process, PostgreSQL, Redis and the receiver. */
    cpu(): Promise<Figures>;
}

/**
 * `bare` stores nothing, `floor` what is accepted and what came of it. The next are scanwire in a host, the last three its `serve`: on both
 * servers, without Redis, and embedded.
 */
export type SenderKind = 'bare' | 'floor' | 'embedded' | 'servers' | 'neighbours' | 'serve' | 'serve-postgres' | 'serve-embedded';

export interface SenderOptions {
    readonly checkout: Checkout;
    readonly kind: SenderKind;
    /** How many there are; 1 unless it is given. Of scanwire. */
    readonly exporters?: number;
    /** Of scanwire in a host, and `paused` of the floor. */
    readonly host?: HostOptions;
    /** Milliseconds until the receiver answers. */
    readonly answersAfter?: number;
    /** The receiver answers the first try of each message of so many with an error and a page that says so. It has come then; others see it again. */
    readonly refusesOneOf?: number;
    /** Of a receiver that is called by https, and of who asks it what has come; as JSON can say it. */
    readonly tls?: { readonly receiver: TlsOptions; readonly asking: Credentials & { readonly ca: string } };
    readonly execArgv?: readonly string[];
    /** Milliseconds that each server is away, one way; of a sender that is told where they are, so not of `serve`. */
    readonly distance?: number;
    /** Of `neighbours`: the other exporters, and how many retries are due to the last of them; by what name the name server knows this one's receiver, if by any. */
    readonly neighbours?: {
        readonly urls: readonly string[];
        readonly nameServer: string;
        readonly name: string;
        readonly retries: number;
    };
}

/** What a host does besides the least. */
export interface HostOptions {
    /** What scanwire takes when it is not told otherwise, unless one is given. */
    readonly window?: number;
    /** How many order keys the events have in turn, for exporters that are ordered; none when absent. */
    readonly orderKeys?: number;
    /** How many owners exporters and events have in turn; none when absent. */
    readonly owners?: number;
    /** Whether each event has an idempotency key of its own. */
    readonly idempotencyKeys?: boolean;
    /** What exporters are created with besides. */
    readonly settings?: Readonly<Record<string, unknown>>;
    /** Whether nothing is sent: what is accepted waits. */
    readonly paused?: boolean;
    /** What is switched on to watch it. */
    readonly watched?: readonly ('metrics' | 'spans')[];
    /** Options of the plugin besides. */
    readonly options?: { readonly rate?: number; readonly keepResponses?: boolean };
    /** Whether one exporter more gets what becomes of the others, and nothing else. */
    readonly notices?: boolean;
}

/** How many deliveries an event makes: exporters with owners get those of theirs. */
export function deliveriesOfEach({ exporters = 1, host: { owners = 1 } = {} }: Pick<SenderOptions, 'exporters' | 'host'>): number {
    return exporters / owners;
}

/** The figures of `cpuSince`. */
export const CPU_FIGURES: Readonly<Record<string, Figure>> = {
    cpu: { label: 'CPU, µs each' },
    process: { label: 'CPU of the process, µs each' },
    postgres: { label: 'CPU of PostgreSQL, µs each' },
    redis: { label: 'CPU of Redis, µs each' },
};

const NEEDS: Readonly<Record<SenderKind, StoreNeeds>> = {
    bare: { redis: 'shared' },
    floor: { database: true, redis: 'shared' },
    embedded: {},
    servers: { database: true, redis: 'shared' },
    neighbours: { database: true, redis: 'shared' },
    serve: { database: true, redis: 'own' },
    'serve-postgres': { database: true },
    'serve-embedded': {},
};

/** Starts a sender on an empty store, and removes everything after the task. */
export async function withSender<Result>(options: SenderOptions, task: (sender: SenderUnderTest) => Promise<Result>): Promise<Result> {
    const { checkout, kind, answersAfter = 0, refusesOneOf = 0, tls } = options;
    const store = await emptyStore(NEEDS[kind]);
    try {
        const receiving = [answersAfter, tls?.receiver ?? null, refusesOneOf].map((option) => JSON.stringify(option));
        const receiver = await background(checkout, 'receiver', { args: receiving });
        const origin = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${receiver.firstLine}`;
        const connections = new Pool(origin, { headersTimeout: 0, ...(tls && { connect: tls.asking }) });
        try {
            const hooks = `${origin}/hook/`;
            const far = await distant(checkout, store.urls, options.distance ?? 0);
            const sender = await start(options, { ...store, urls: far.urls }, hooks).catch(async (error: unknown) => {
                await far.stop();
                throw error;
            });
            try {
                const processes = { process: sender.pid, ...(await serverProcesses(store.urls)), receiver: receiver.pid };
                const arrived = arrivalsAt(connections);
                const finished: SenderUnderTest['finished'] = async (count, wanted) => {
                    const times = await arrived(count, wanted);
                    await sender.recorded();
                    return times;
                };
                return await task({ ...sender, store, arrived, finished, cpu: () => cpuTimes(processes) });
            } finally {
                await sender.stop();
                await far.stop();
            }
        } finally {
            await connections.close();
            await receiver.stop();
        }
    } finally {
        await store.remove();
    }
}

/** @param hooks Where paths of the receiver begin; each exporter gets one. */
function start(options: SenderOptions, store: SenderStore, hooks: string): Promise<StartedSender> {
    const { checkout, kind, exporters = 1, execArgv = [] } = options;
    if (kind === 'serve' || kind === 'serve-postgres' || kind === 'serve-embedded') {
        return served(
            checkout,
            store,
            Array.from({ length: exporters }, (_, index) => `${hooks}${index + 1}`),
        );
    }

    const { DATABASE_URL = store.folder, ...env } = store.urls;
    const [script, ...where] = programOf(options, DATABASE_URL);
    return contender(checkout, script, { args: [hooks, ...where], execArgv, env }, kind !== 'floor');
}

/** Where the servers are reached as if they were so many milliseconds away, each through a process of its own. */
async function distant(checkout: Checkout, urls: SenderStore['urls'], milliseconds: number) {
    const ways = await Promise.all(
        Object.entries(milliseconds === 0 ? {} : urls).map(async ([name, text]) => {
            const url = new URL(text);
            const way = await background(checkout, 'distance', { args: [url.port, String(milliseconds)] });
            url.port = way.firstLine;
            return { name, url: url.href, stop: way.stop };
        }),
    );
    return {
        urls: { ...urls, ...Object.fromEntries(ways.map(({ name, url }) => [name, url])) },
        stop: async (): Promise<void> => void (await Promise.all(ways.map(({ stop }) => stop()))),
    };
}

/** The contender and what it is told. */
function programOf({ kind, exporters = 1, host = {}, neighbours }: SenderOptions, at: string): readonly [name: string, ...args: string[]] {
    if (neighbours !== undefined) {
        const { urls, nameServer, name, retries } = neighbours;
        return ['neighbour-sender', at, JSON.stringify(urls), nameServer, name, String(retries)];
    }
    if (kind === 'bare' || kind === 'floor') {
        return [`${kind}-sender`, at, JSON.stringify(host)];
    }
    return ['scanwire-sender', kind, at, String(exporters), JSON.stringify(host)];
}

/** CPU time since then for each of so many: by process, as `cpu` of all but the receiver, as `all` of all. */
export async function cpuSince(before: Figures, sender: SenderUnderTest, count: number): Promise<Figures> {
    const after = await sender.cpu();
    const parts = Object.fromEntries(Object.entries(after).map(([name, time]) => [name, (time - (before[name] as number)) / count]));
    const all = Object.values(parts).reduce((sum, part) => sum + part, 0);
    return { cpu: all - (parts.receiver ?? 0), all, ...parts };
}

interface Received {
    readonly count: number;
    readonly repeated: number;
    readonly arrivals: readonly (readonly [id: string, at: number])[];
}

function arrivalsAt(receiver: Pool): SenderUnderTest['arrived'] {
    return async (count, { times = false } = {}) => {
        const received = JSON.parse(await ask(receiver, 'GET', `/?count=${count}${times ? '&arrivals' : ''}`)) as Received;
        assert.strictEqual(received.count, count, 'more has arrived than was published');
        if (received.repeated > 0) {
            console.error(`${received.repeated} of ${count} arrived more than once`);
        }

        return new Map(received.arrivals);
    };
}
