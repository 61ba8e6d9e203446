import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readlink, writeFile } from 'node:fs/promises';
import type { OutgoingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { newApiKey } from '../lib/keys/key-form.ts';
import type { Checkout } from './checkout.ts';
import { median } from './comparison.ts';
import { cpuTimes } from './cpu-time.ts';
import { HOSTILE, HOSTILE_EVENTS, plainRecords } from './hostile-bodies.ts';
import { child, memoryMiB } from './processes.ts';
import type { Figure, Figures, Measurement, Section } from './section.ts';
import { ended } from './served-deployment.ts';
import { type ServedHosts, withServedHosts } from './served-hosts.ts';
import { shows } from './shows.ts';
import { percentilesOf } from './steady.ts';

/*
 * What strangers cost those who have a key: `npm run bench -- exposed`. Everything is on the loopback of this machine, in so many
 * connections and for so long as is said here, times `--scale`.
 */
const CONNECTIONS = 5_000;
const KEYS_PER_SECOND = 5_000;
/** How many keys that are none are sent in turn. */
const WRONG_KEYS = 500;
const SECONDS = 60;
/** After the strangers have done their worst, in seconds; no limit of a connection is longer than half of it. */
const LATER = 60;
/** Shows of the good key a second: 3,000 in all, so that a p99 is thirty of them and not the worst moment. */
const RATE = 50;

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
    sentPerSecond: { label: 'wrong keys sent a second' },
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
            scanwire: async (checkout) => () => withServedHosts(checkout, (server) => surrounded(checkout, server, { kind, count, scale })),
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
                        ...Object.fromEntries(
                            Object.keys({ ...HOSTILE, ...HOSTILE_EVENTS }).map((name) => [name, { label: `  ${name}`, digits: 1 }]),
                        ),
                    },
                    scanwire: async (checkout) => () => withServedHosts(checkout, hostileBodies),
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

interface Strangers {
    readonly kind: string;
    readonly count: number;
    readonly scale: number;
}

/** The good key's shows before and while strangers do what they can. */
async function surrounded({ bench }: Checkout, server: ServedHosts, { kind, count, scale }: Strangers): Promise<Figures> {
    const { port } = new URL(server.url);
    const asked = Math.ceil(RATE * SECONDS * scale);
    await shows(server.host, RATE, Math.ceil(asked / 4));
    const alone = await shows(server.host, RATE, asked);
    const [sockets, idle] = [await socketsOf(server.pid), await memoryMiB(server.pid, 'VmRSS')];
    await writeFile(`/proc/${server.pid}/clear_refs`, '5');

    const command = [join(bench, 'contenders', 'strangers.js'), kind, port, String(count), String(SECONDS * scale)];
    const env = { ...process.env, WRONG_KEYS: Array.from({ length: WRONG_KEYS }, newApiKey).join(',') };
    const strangers = spawn(process.execPath, command, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    try {
        const lines = createInterface(strangers.stdout)[Symbol.asyncIterator]();
        await lines.next();
        const meanwhile = await shows(server.host, RATE, asked);
        const { perSecond, sentPerSecond } = JSON.parse((await lines.next()).value as string) as Record<
            'perSecond' | 'sentPerSecond',
            number
        >;
        const peak = await memoryMiB(server.pid, 'VmHWM');
        await sleep(LATER * 1000 * Math.min(1, Math.max(scale, 0.6)));
        const later = await socketsOf(server.pid);
        const [before, during] = [alone, meanwhile].map(({ latencies }) => percentilesOf(latencies)) as [Latencies, Latencies];
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
            ...(kind === 'keys' && { perSecond, sentPerSecond }),
        };
    } finally {
        await ended(strangers, 'SIGKILL');
    }
}

type Latencies = Record<'p50' | 'p99', number>;

async function socketsOf(pid: number): Promise<number> {
    const links = await Promise.all((await readdir(`/proc/${pid}/fd`)).map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
    return links.filter((link) => link.startsWith('socket:')).length;
}

const MIB = 1_048_576;
const RECORDS = { 'content-type': 'application/x-ndjson' };

/** What each costs in CPU of the server, over what so many bytes of plain records do, or a request where those are fewer. */
async function hostileBodies({ url, key, pid }: ServedHosts): Promise<Figures> {
    const spent = async (): Promise<number> => ((await cpuTimes({ server: pid })).server ?? 0) / 1000;
    const cost = async (body: Buffer, path = '/https-record-schema/check', of: OutgoingHttpHeaders = RECORDS): Promise<number> => {
        const before = await spent();
        const headers = { ...of, token: key };
        const sent = request(`${url}${path}`, { method: 'POST', headers, rejectUnauthorized: false, agent: false });
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
    for (const [name, body] of Object.entries(HOSTILE_EVENTS)) {
        const headers = { 'content-type': 'application/json', ...(name.startsWith('gzip') && { 'content-encoding': 'gzip' }) };
        times[name] = (await cost(body, '/webhook-exporter/events', headers)) / Math.max(least, perByte * body.length);
    }

    return { worst: Math.max(...Object.values(times)), ...times };
}

/** Starts of either kind, in turn, behind one that warms up the file cache. */
const STARTS = 7;

async function added(checkout: Checkout): Promise<Figures> {
    const start = (variant: string): Promise<Figures> => child(checkout, 'host', { execArgv: ['--expose-gc'], args: [variant] });
    const pairs: { readonly bare: Figures; readonly plugins: Figures }[] = [];
    while (pairs.length <= STARTS) {
        pairs.push({ bare: await start('bare'), plugins: await start('plugins') });
    }
    const more = (name: string): number => median(pairs.slice(1).map(({ bare, plugins }) => (plugins[name] ?? 0) - (bare[name] ?? 0)));
    return { startMs: more('startMs'), cpuMs: more('cpuMs'), rssMiB: more('rssMiB') };
}
