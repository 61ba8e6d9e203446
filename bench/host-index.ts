import { request } from 'node:http';
import { scanDatabase } from '../test/adapters/scan-database/scan-database.ts';
import { type TestDatabase, testDatabase } from '../test/support/test-database.ts';
import type { Checkout } from './checkout.ts';
import { median } from './comparison.ts';
import { cpuTimes, serverProcesses } from './cpu-time.ts';
import { type Background, background } from './processes.ts';
import type { Figure, Run, Section } from './section.ts';

const HOSTS = 100_000;
/** In a run after one that warms up; several, since CPU time is counted in coarse steps. */
const READINGS = 3;

const FIGURES: Readonly<Record<string, Figure>> = {
    seconds: { label: 's', digits: 2 },
    firstByteMs: { label: 'first byte, ms' },
    server: { label: 'CPU of the server, µs a host', digits: 1 },
    postgres: { label: 'CPU of PostgreSQL, µs a host', digits: 1 },
    peakMiB: { label: 'peak memory of the server, MiB' },
    mebibytes: { label: 'body, MiB', digits: 1 },
};

/** The index of many hosts from PostgreSQL, of our own tables and of a scan database, by scanwire and by a hand-written fastify route. */
export const hostIndex: Section = {
    name: 'index',
    discarded: 0,

    async open({ own, scale }) {
        const hosts = Math.ceil(HOSTS * scale);
        const databases = new Map<Checkout, FilledDatabase>();
        const scanned = await filledScanDatabase(hosts);
        const scanwire = (checkout: Checkout, ...args: string[]): Run =>
            reading(hosts, async () => {
                const server = await background(checkout, 'scanwire-index', { args });
                const [url = '', token = ''] = server.firstLine.split(' ');
                return { server, url, token };
            });
        const fastify = (database: string, table: string, path: string) => ({
            name: 'fastify + pg',
            run: reading(hosts, async () => {
                const server = await background(own, 'fastify-index', { args: [database, 'bench', table] });
                return { server, url: server.firstLine + path, token: 'bench' };
            }),
        });
        return {
            measurements: [
                {
                    title: `index of ${hosts.toLocaleString('en')} hosts`,
                    figures: FIGURES,

                    async scanwire(checkout) {
                        const database = await filledDatabase(checkout, hosts);
                        databases.set(checkout, database);
                        return scanwire(checkout, database.url);
                    },

                    async peers() {
                        const { url, path } = databases.get(own) as FilledDatabase;
                        return [fastify(url, 'scanwire.hosts', path)];
                    },
                },
                {
                    title: `the same of a scan database`,
                    figures: FIGURES,
                    scanwire: async (checkout) => scanwire(checkout, scanned.url, 'scan-database'),
                    peers: async () => [fastify(scanned.url, 'hosts', '/rest_api/v2/workspaces/1/hosts')],
                },
            ],

            async close() {
                await Promise.all([scanned.stop(), ...[...databases.values()].map(({ drop }) => drop())]);
            },
        };
    },
};

/** With values as in our own tables. */
async function filledScanDatabase(hosts: number): Promise<Awaited<ReturnType<typeof scanDatabase>>> {
    const database = await scanDatabase(hosts);
    await database.pool.query(`update hosts set name = 'host-' || id || '.example.com', mac = '00:50:56:00:01:02', os_name = 'Linux',
        os_flavor = 'Debian', os_sp = '12', purpose = 'server', info = 'rack ' || id % 40, comments = 'seen by the weekly scan'`);
    await database.pool.query('vacuum analyze');
    return database;
}

interface FilledDatabase extends TestDatabase {
    /** Of the index. */
    readonly path: string;
}

/** By the checkout itself, as its tables may be others. */
async function filledDatabase(checkout: Checkout, hosts: number): Promise<FilledDatabase> {
    const database = await testDatabase();
    const server = await background(checkout, 'scanwire-index', { args: [database.url, String(hosts)] });
    await server.stop();
    const [url = ''] = server.firstLine.split(' ');
    return { ...database, path: new URL(url).pathname };
}

interface IndexServer {
    readonly server: Background;
    /** Of the index. */
    readonly url: string;
    readonly token: string;
}

/** Each run by a server of its own, since one process may hold more memory than another of the same program. */
function reading(hosts: number, start: () => Promise<IndexServer>): Run {
    return async () => {
        const { server, url, token } = await start();
        try {
            await readIndex(url, token);
            const processes = { server: server.pid, ...(await serverProcesses(process.env)) };
            await server.resetPeak();
            const before = await cpuTimes(processes);
            const answers: Answer[] = [];
            while (answers.length < READINGS) {
                answers.push(await readIndex(url, token));
            }

            const after = await cpuTimes(processes);
            const cpu = Object.keys(after).map((name) => [name, (Number(after[name]) - Number(before[name])) / (hosts * READINGS)]);
            const of = (name: keyof Answer): number => median(answers.map((answer) => answer[name]));
            const [seconds, firstByteMs, mebibytes] = [of('seconds'), of('firstByteMs'), of('mebibytes')];
            return { seconds, firstByteMs, mebibytes, ...Object.fromEntries(cpu), peakMiB: await server.peakMiB() };
        } finally {
            await server.stop();
        }
    };
}

interface Answer {
    readonly seconds: number;
    readonly firstByteMs: number;
    readonly mebibytes: number;
}

/** Reads an index to its end without keeping it. */
function readIndex(url: string, token: string): Promise<Answer> {
    const started = performance.now();
    return new Promise((resolve, reject) => {
        const get = request(url, { headers: { token } }, (response) => {
            let bytes = 0;
            let firstByteMs = 0;
            response.on('data', (chunk: Buffer) => {
                firstByteMs ||= performance.now() - started;
                bytes += chunk.length;
            });
            response.on('error', reject);
            response.on('end', () => {
                if (response.statusCode !== 200 || !response.complete) {
                    reject(new Error(`${url}: status ${response.statusCode}`));
                    return;
                }

                resolve({ seconds: (performance.now() - started) / 1000, firstByteMs, mebibytes: bytes / 2 ** 20 });
            });
        });
        get.on('error', reject);
        get.end();
    });
}
