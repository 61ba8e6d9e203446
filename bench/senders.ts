import assert from 'node:assert';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { Agent, request } from 'undici';
import { testDatabase } from '../test/support/test-database.ts';
import type { Checkout } from './checkout.ts';
import { cpuTimes, serverProcesses } from './cpu-time.ts';
import { background } from './processes.ts';
import type { Figure, Figures } from './section.ts';

/** A sender in a process of its own, with a receiver in another that gets all it sends. */
export interface SenderUnderTest {
    publish(event: unknown): Promise<void>;
    /** Makes the sender publish so many by itself. */
    burst(count: number): Promise<void>;
    /**
     * Resolves when so many have arrived since the last call and their outcomes are recorded, with the time of each in microseconds
     * by id where that is asked for. Says on stderr when something arrived twice, as it may. @throws Error when more arrived.
     */
    finished(count: number, options?: { readonly times?: boolean }): Promise<ReadonlyMap<string, number>>;
    /** CPU time so far, in microseconds, of the process, PostgreSQL and Redis. */
    cpu(): Promise<Figures>;
    /** The most memory that the process has held. */
    peakMiB(): Promise<number>;
    /** Counts the rows for the planner, where there is a server, so that it is not left to when the next autovacuum happens to come. */
    analyze(): Promise<void>;
}

/** `bare` stores nothing, `rows` what is accepted and what came of it; the others are scanwire. */
export type SenderKind = 'bare' | 'rows' | 'embedded' | 'servers' | 'neighbours';

export interface SenderOptions {
    readonly checkout: Checkout;
    readonly kind: SenderKind;
    /** What scanwire takes when it is not told otherwise, unless one is given. */
    readonly window?: number;
    readonly execArgv?: readonly string[];
    /** Of `neighbours`: the other exporters, and how many retries are due to the last of them. */
    readonly neighbours?: { readonly urls: readonly string[]; readonly nameServer: string; readonly retries: number };
}

/** The figures of `cpuSince`. */
export const CPU_FIGURES: Readonly<Record<string, Figure>> = {
    cpu: { label: 'CPU, µs each' },
    process: { label: 'CPU of the process, µs each' },
    postgres: { label: 'CPU of PostgreSQL, µs each' },
    redis: { label: 'CPU of Redis, µs each' },
};

const connections = new Agent({ connections: 50, headersTimeout: 0, bodyTimeout: 0 });

/** Starts a sender on an empty store, and removes everything after the task. */
export async function withSender<Result>(options: SenderOptions, task: (sender: SenderUnderTest) => Promise<Result>): Promise<Result> {
    const { checkout, kind, execArgv = [] } = options;
    const store = await emptyStore(kind);
    const receiver = await background(checkout, 'receiver');
    const [script, ...where] = programOf(options, store.at);
    try {
        const sender = await background(checkout, script, { args: [`http://127.0.0.1:${receiver.firstLine}/hook`, ...where], execArgv });
        try {
            const servers = kind === 'embedded' ? {} : await serverProcesses();
            const { postgres, ...others } = servers;
            const processes = { process: sender.pid, ...(kind === 'bare' ? others : servers) };
            return await task({
                ...calls(`http://127.0.0.1:${sender.firstLine}`, `http://127.0.0.1:${receiver.firstLine}`),
                cpu: () => cpuTimes(processes),
                peakMiB: sender.peakMiB,
                analyze: store.analyze,
            });
        } finally {
            await sender.stop();
        }
    } finally {
        await receiver.stop();
        await store.remove();
    }
}

/** The contender and what it is told. */
function programOf({ kind, window, neighbours }: SenderOptions, at: string): readonly [name: string, ...args: string[]] {
    if (neighbours !== undefined) {
        const { urls, nameServer, retries } = neighbours;
        return ['neighbour-sender', at, JSON.stringify(urls), nameServer, String(retries)];
    }
    if (kind === 'bare' || kind === 'rows') {
        return ['bare-sender', at];
    }
    return ['scanwire-sender', kind, at, window === undefined ? '' : String(window)];
}

/** CPU time since then for each of so many, all together and by process. */
export async function cpuSince(before: Figures, sender: SenderUnderTest, count: number): Promise<Figures> {
    const after = await sender.cpu();
    const parts = Object.fromEntries(Object.entries(after).map(([name, time]) => [name, (time - (before[name] as number)) / count]));
    return { cpu: Object.values(parts).reduce((sum, part) => sum + part, 0), ...parts };
}

function calls(sender: string, receiver: string): Pick<SenderUnderTest, 'publish' | 'burst' | 'finished'> {
    return {
        async publish(event) {
            await ask(`${sender}/`, JSON.stringify(event));
        },

        async burst(count) {
            await ask(`${sender}/burst?count=${count}`, '');
        },

        async finished(count, { times = false } = {}) {
            const answer = await ask(`${receiver}/?count=${count}${times ? '&arrivals' : ''}`);
            const received = JSON.parse(answer) as Received;
            assert.strictEqual(received.count, count, 'more has arrived than was published');
            if (received.repeated > 0) {
                console.error(`${received.repeated} of ${count} arrived more than once`);
            }

            await ask(`${sender}/recorded`);
            return new Map(received.arrivals);
        },
    };
}

interface Received {
    readonly count: number;
    readonly repeated: number;
    readonly arrivals: readonly (readonly [id: string, at: number])[];
}

/** A GET, or a POST where there is a body. */
async function ask(url: string, body?: string): Promise<string> {
    const response = await request(url, { dispatcher: connections, ...(body !== undefined && { method: 'POST', body }) });
    const text = await response.body.text();
    if (response.statusCode >= 300) {
        throw new Error(`${url} answered ${response.statusCode}: ${text}`);
    }

    return text;
}

interface EmptyStore {
    /** A folder or the URL of a database; empty where nothing is stored. */
    readonly at: string;
    analyze(): Promise<void>;
    remove(): Promise<void>;
}

async function emptyStore(kind: SenderKind): Promise<EmptyStore> {
    const nothing = async (): Promise<void> => {};
    if (kind === 'bare') {
        return { at: '', analyze: nothing, remove: nothing };
    }

    if (kind === 'embedded') {
        const at = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
        return { at, analyze: nothing, remove: () => rm(at, { recursive: true }) };
    }

    const { url, drop } = await testDatabase();
    return { at: url, analyze: () => analyze(url), remove: drop };
}

async function analyze(url: string): Promise<void> {
    const client = new pg.Client(url);
    await client.connect();
    await client.query('analyze');
    await client.end();
}
