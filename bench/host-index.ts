import { request } from 'node:http';
import { testDatabase } from '../test/support/test-database.ts';
import type { Checkout } from './checkout.ts';
import { median } from './comparison.ts';
import { cpuTimes, serverProcesses } from './cpu-time.ts';
import { type Background, background } from './processes.ts';
import type { Run } from './rounds.ts';
import type { Figure, Section } from './section.ts';

const HOSTS = 100_000;
/** In a run, since CPU time is counted in coarse steps. */
const READINGS = 3;

const FIGURES: Readonly<Record<string, Figure>> = {
    seconds: { label: 's', digits: 2 },
    firstByteMs: { label: 'first byte, ms' },
    server: { label: 'CPU of the server, µs a host', digits: 1 },
    postgres: { label: 'CPU of PostgreSQL, µs a host', digits: 1 },
    peakMiB: { label: 'peak memory of the server, MiB' },
    mebibytes: { label: 'body, MiB', digits: 1 },
};

interface IndexServer {
    readonly server: Background;
    readonly database: string;
    /** Of the index. */
    readonly url: string;
    readonly token: string;
}

/** The index of many hosts from PostgreSQL, by scanwire and by a hand-written fastify route. */
export const hostIndex: Section = {
    name: 'index',
    discarded: 1,

    async open({ own, scale }) {
        const hosts = Math.ceil(HOSTS * scale);
        const closers: (() => Promise<void>)[] = [];
        const ours = new Map<Checkout, IndexServer>();
        return {
            measurements: [
                {
                    title: `index of ${hosts.toLocaleString('en')} hosts`,
                    figures: FIGURES,

                    async scanwire(checkout) {
                        const { url: database, drop } = await testDatabase();
                        closers.unshift(drop);
                        const server = await background(checkout, 'scanwire-index', { args: [database, String(hosts)] });
                        closers.unshift(server.stop);
                        const [url = '', token = ''] = server.firstLine.split(' ');
                        ours.set(checkout, { server, database, url, token });
                        return reading(ours.get(checkout) as IndexServer, hosts);
                    },

                    async peers() {
                        const { database, url } = ours.get(own) as IndexServer;
                        const server = await background(own, 'fastify-index', { args: [database, 'bench'] });
                        closers.unshift(server.stop);
                        const { pathname } = new URL(url);
                        return [
                            {
                                name: 'fastify + pg',
                                run: reading({ server, database, url: server.firstLine + pathname, token: 'bench' }, hosts),
                            },
                        ];
                    },
                },
            ],

            async close() {
                for (const close of closers) {
                    await close();
                }
            },
        };
    },
};

function reading({ server, url, token }: IndexServer, hosts: number): Run {
    return async () => {
        const processes = { server: server.pid, ...(await serverProcesses()) };
        await server.resetPeak();
        const before = await cpuTimes(processes);
        const answers: Answer[] = [];
        while (answers.length < READINGS) {
            answers.push(await readIndex(url, token));
        }

        const after = await cpuTimes(processes);
        const cpu = Object.keys(after).map((name) => [name, (Number(after[name]) - Number(before[name])) / (hosts * READINGS)]);
        const of = (name: keyof Answer): number => median(answers.map((answer) => answer[name]));
        return {
            seconds: of('seconds'),
            firstByteMs: of('firstByteMs'),
            mebibytes: of('mebibytes'),
            ...Object.fromEntries(cpu),
            peakMiB: await server.peakMiB(),
        };
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
