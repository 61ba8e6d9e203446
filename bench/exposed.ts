import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { newApiKey } from '../lib/keys/api-keys.ts';
import type { Checkout } from './checkout.ts';
import { cpuTimes } from './cpu-time.ts';
import { HOSTILE, plainRecords } from './hostile-bodies.ts';
import { child, memoryMiB } from './processes.ts';
import type { Figure, Figures, Measurement, Section } from './section.ts';
import { percentilesOf } from './steady.ts';

/*
 * What strangers cost those who have a key: `npm run bench -- exposed`. Everything is on the loopback of this machine, in so many
 * connections and for so long as is said here, times `--scale`.
 */
const CONNECTIONS = 5_000;
const KEYS_PER_SECOND = 5_000;
const SECONDS = 60;
/** After the strangers have done their worst, in seconds; no limit of a connection is longer than half of it. */
const LATER = 60;
/** Shows of the good key a second. */
const RATE = 20;

const UNDER: Readonly<Record<string, Figure>> = {
    medianBefore: { label: 'show p50 before, ms', digits: 1 },
    median: { label: 'show p50 meanwhile, ms', digits: 1 },
    before: { label: 'show p99 before, ms', digits: 1 },
    p99: { label: 'show p99 meanwhile, ms', digits: 1 },
    times: { label: 'meanwhile, times before', digits: 2, bar: '≤ 3, or' },
    more: { label: 'meanwhile, ms more', digits: 1, bar: '≤ 20' },
    failed: { label: 'shows that failed', bar: '0' },
    memoryMiB: { label: 'memory over idle, MiB', bar: '≤ 100' },
    sockets: { label: 'sockets a minute later, more than before', bar: '0' },
    perSecond: { label: 'wrong keys answered a second' },
};

/** A server with strangers around it, hostile bodies, and what the plugins add to a server. */
export const exposed: Section = {
    name: 'exposed',
    discarded: 0,
    mostRounds: 3,

    async open({ scale }) {
        const connections = Math.ceil(CONNECTIONS * Math.min(1, scale * 2));
        const under = (kind: string, count: number, title: string): Measurement => ({
            title: `${count.toLocaleString('en')} ${title}`,
            figures: UNDER,
            scanwire: async (checkout) => () => withServer(checkout, (server) => surrounded(checkout, server, { kind, count, scale })),
        });
        return {
            measurements: [
                under('silent', connections, 'silent connections'),
                under('slow', connections, 'slow TLS connections'),
                under('keys', KEYS_PER_SECOND, 'wrong keys a second'),
                {
                    title: 'hostile bodies, against as many bytes of plain records',
                    figures: {
                        worst: { label: 'CPU of the worst, times that of records', digits: 1, bar: '≤ 50' },
                        ...Object.fromEntries(Object.keys(HOSTILE).map((name) => [name, { label: `  ${name}`, digits: 1 }])),
                    },
                    scanwire: async (checkout) => () => withServer(checkout, hostileBodies),
                },
                {
                    title: 'what token-auth and rest-api-v2 add to a hapi server',
                    figures: {
                        startMs: { label: 'ms to the first answer', bar: '≤ 150' },
                        cpuMs: { label: 'CPU until then, ms' },
                        rssMiB: { label: 'memory, MiB', digits: 1, bar: '≤ 20' },
                    },
                    scanwire: async (checkout) => () => added(checkout),
                },
            ],
        };
    },
};

interface Served {
    readonly url: string;
    readonly pid: number;
    readonly key: string;
}

const run = promisify(execFile);

/** `serve` on a folder of its own, with hosts and a key. */
async function withServer(checkout: Checkout, task: (server: Served) => Promise<Figures>): Promise<Figures> {
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
    const env = { PATH: process.env.PATH };
    const args = (...command: string[]): string[] => [checkout.program, ...command, '--data', join(folder, 'data'), '--json'];
    const server = spawn(process.execPath, args('serve', '--port', '0'), { env, stdio: ['ignore', 'pipe', 'inherit'] });
    try {
        const { url } = JSON.parse(await firstLine(server)) as { url: string };
        await run(process.execPath, args('import', 'fixtures/scans/services.xml'), { env });
        const scopes = ['inventory:read', 'records:write'].flatMap((scope) => ['--scope', scope]);
        const { stdout } = await run(process.execPath, args('keys', 'create', 'good', ...scopes), { env });
        const { key } = JSON.parse(stdout) as { key: string };
        return await task({ url, key, pid: server.pid as number });
    } finally {
        await end(server);
        await rm(folder, { recursive: true });
    }
}

interface Strangers {
    readonly kind: string;
    readonly count: number;
    readonly scale: number;
}

/** The good key's shows before and while strangers do what they can. */
async function surrounded({ bench }: Checkout, server: Served, { kind, count, scale }: Strangers): Promise<Figures> {
    const { port } = new URL(server.url);
    const shows = Math.ceil(RATE * SECONDS * scale);
    await showing(server, Math.ceil(shows / 4));
    const alone = await showing(server, shows);
    const [sockets, idle] = [await socketsOf(server.pid), await memoryMiB(server.pid, 'VmRSS')];
    await writeFile(`/proc/${server.pid}/clear_refs`, '5');

    const command = [join(bench, 'contenders', 'strangers.js'), kind, port, String(count), String(SECONDS * scale)];
    const env = { ...process.env, WRONG_KEY: newApiKey() };
    const strangers = spawn(process.execPath, command, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    try {
        const lines = createInterface(strangers.stdout)[Symbol.asyncIterator]();
        await lines.next();
        const meanwhile = await showing(server, shows);
        const { perSecond } = JSON.parse((await lines.next()).value as string) as { perSecond: number };
        const peak = await memoryMiB(server.pid, 'VmHWM');
        await sleep(LATER * 1000 * Math.min(1, Math.max(scale, 0.6)));
        const later = await socketsOf(server.pid);
        const [before, during] = [alone, meanwhile].map(({ latencies }) => percentilesOf(latencies)) as [Percentiles, Percentiles];
        return {
            medianBefore: before.p50,
            median: during.p50,
            before: before.p99,
            p99: during.p99,
            times: during.p99 / before.p99,
            more: during.p99 - before.p99,
            failed: meanwhile.failed,
            memoryMiB: peak - idle,
            sockets: later - sockets,
            ...(kind === 'keys' && { perSecond }),
        };
    } finally {
        await end(strangers);
    }
}

type Percentiles = Record<'p50' | 'p99', number>;

interface Shows {
    /** In milliseconds. */
    readonly latencies: readonly number[];
    readonly failed: number;
}

const SHOW = '/rest_api/v2/workspaces/1/hosts/1';
const PATIENCE = 10_000;

/** So many a second, whether those before are answered or not, over connections that are kept. */
async function showing({ url, key }: Served, count: number): Promise<Shows> {
    const agent = new Agent({ keepAlive: true, rejectUnauthorized: false, maxSockets: 4 });
    const latencies: number[] = [];
    let failed = 0;
    const show = async (): Promise<void> => {
        const started = performance.now();
        try {
            const asked = request(url + SHOW, { agent, headers: { token: key }, timeout: PATIENCE }).end();
            asked.once('timeout', () => asked.destroy());
            const [answer] = await once(asked, 'response');
            await answer.resume().toArray();
            failed += answer.statusCode === 200 ? 0 : 1;
        } catch {
            failed += 1;
        }
        latencies.push(performance.now() - started);
    };

    const started = performance.now();
    const all: Promise<void>[] = [];
    for (let index = 0; index < count; index += 1) {
        await sleep(started + (index * 1000) / RATE - performance.now());
        all.push(show());
    }
    await Promise.all(all);
    agent.destroy();
    return { latencies, failed };
}

async function socketsOf(pid: number): Promise<number> {
    const links = await Promise.all((await readdir(`/proc/${pid}/fd`)).map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
    return links.filter((link) => link.startsWith('socket:')).length;
}

const MIB = 1_048_576;

/** What each costs in CPU of the server, over what so many bytes of plain records do, or a request where those are fewer. */
async function hostileBodies({ url, key, pid }: Served): Promise<Figures> {
    const spent = async (): Promise<number> => ((await cpuTimes({ server: pid })).server ?? 0) / 1000;
    const cost = async (body: Buffer): Promise<number> => {
        const before = await spent();
        const headers = { 'content-type': 'application/x-ndjson', token: key };
        const sent = request(`${url}/https-record-schema/check`, { method: 'POST', headers, rejectUnauthorized: false, agent: false });
        // A body may be refused before its end.
        sent.on('error', () => {});
        const [answer] = await once(sent.end(body), 'response');
        await answer.resume().toArray();
        return (await spent()) - before;
    };

    const plain = plainRecords(8 * MIB);
    await cost(plain);
    const perByte = (await cost(plain)) / plain.length;
    // CPU time is counted in steps of 10 ms.
    const least = Math.max(10, await cost(Buffer.from('\n')));
    const times: Record<string, number> = {};
    for (const [name, body] of Object.entries(HOSTILE)) {
        times[name] = (await cost(body)) / Math.max(least, perByte * body.length);
    }

    return { worst: Math.max(...Object.values(times)), ...times };
}

async function added(checkout: Checkout): Promise<Figures> {
    const start = (variant: string): Promise<Figures> => child(checkout, 'host', { execArgv: ['--expose-gc'], args: [variant] });
    // The first of each warms up the file cache.
    const figures: Record<string, Figures> = {};
    for (const variant of ['bare', 'plugins', 'plugins', 'bare']) {
        figures[variant] = await start(variant);
    }
    const { bare, plugins } = figures;
    const more = (name: string): number => (plugins?.[name] ?? 0) - (bare?.[name] ?? 0);
    return { startMs: more('startMs'), cpuMs: more('cpuMs'), rssMiB: more('rssMiB') };
}

async function firstLine(process: ChildProcess): Promise<string> {
    const lines = createInterface(process.stdout as NodeJS.ReadableStream)[Symbol.asyncIterator]();
    const { value, done } = await lines.next();
    if (done === true) {
        throw new Error(`${process.spawnargs.join(' ')} ended without a line`);
    }
    return value;
}

async function end(process: ChildProcess): Promise<void> {
    if (process.exitCode === null && process.signalCode === null) {
        const exited = once(process, 'exit');
        process.kill('SIGKILL');
        await exited;
    }
}
