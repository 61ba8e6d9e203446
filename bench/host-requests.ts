import { Pool } from 'undici';
import type { Checkout } from './checkout.ts';
import { serverProcesses, timed, withCpu } from './cpu-time.ts';
import { hostDatabase, type IndexServer, indexServer } from './index-server.ts';
import { type Figure, type Measurement, type OpenSection, ofEach, type Run, type Section, withBars } from './section.ts';
import { percentilesOf } from './steady.ts';

const CLIENTS = 8;

/** The figures of `asked`. */
export const FIGURES: Readonly<Record<string, Figure>> = {
    perSecond: { label: 'requests/s', moreIsBetter: true },
    p50: { label: 'p50, ms', digits: 2 },
    p99: { label: 'p99, ms', digits: 2 },
    server: { label: 'CPU of the server, µs a request', digits: 1 },
    postgres: { label: 'CPU of PostgreSQL, µs a request', digits: 1 },
    bytes: { label: 'body, bytes' },
};

/** Requests of clients who each wait for the answer to the one before. */
export interface Requests {
    /** How many requests are counted. */
    readonly count: number;
    /** How many clients there are; 8 unless it is given. */
    readonly clients?: number;
    /** What stands behind the path of the server, of each request. */
    path(index: number): string;
    /** What is posted, as JSON; without it the requests get. */
    body?(): string;
}

interface HostRequests extends Requests {
    readonly title: string;
    /** How many hosts there are. */
    readonly hosts: number;
}

const ONE_OF_MANY = (index: number): string => `/${1 + (index % 500)}`;

const KINDS: readonly (HostRequests & { readonly bar: string })[] = [
    { title: 'one host', hosts: 500, count: 20_000, path: ONE_OF_MANY, bar: '≥ 0.95 ×' },
    { title: 'index of 20 hosts', hosts: 20, count: 10_000, path: () => '', bar: '≥ 0.95 ×' },
    { title: 'index of 500 hosts', hosts: 500, count: 2_000, path: () => '', bar: '≥ 2 ×' },
];

/** Small answers from PostgreSQL, beside hand-written fastify routes. The keys are in memory on both sides. */
export const requests: Section = {
    name: 'requests',
    discarded: 1,

    async open({ own, scale }) {
        const { serving, close } = servers();
        const measured = KINDS.map(({ bar, ...kind }): { measurement: Measurement; drop(): Promise<void> } => {
            const databases = ofEach((checkout) => hostDatabase(checkout, kind.hosts));
            const asking = (server: IndexServer): Run => asked(server, kind, scale);
            return {
                measurement: {
                    title: `${kind.title}, PostgreSQL, ${CLIENTS} clients`,
                    figures: withBars(FIGURES, { perSecond: bar }),

                    async scanwire(checkout) {
                        const { url } = await databases.of(checkout);
                        return asking(await serving(checkout, 'scanwire-hosts', ['postgres', url]));
                    },

                    async peers() {
                        const { url, workspace } = await databases.of(own);
                        return [
                            { name: 'fastify + pg', run: asking(await serving(own, 'fastify-hosts', [url, 'scanwire.hosts', workspace])) },
                        ];
                    },
                },

                async drop() {
                    await Promise.all((await databases.all()).map((database) => database.drop()));
                },
            };
        });
        return {
            measurements: measured.map(({ measurement }) => measurement),

            async close() {
                await close();
                await Promise.all(measured.map(({ drop }) => drop()));
            },
        };
    },
};

/** What a request costs beyond the server that it goes through: one host from memory. */
export const show: Section = {
    name: 'show',
    // V8 is done with what there is to compile after some 30,000; rounds are short, since the machine's pace changes within seconds.
    discarded: 4,

    async open({ own, scale }): Promise<OpenSection> {
        const { serving, close } = servers();
        const one: HostRequests = { title: 'one host from memory', hosts: 500, count: 8_000, path: ONE_OF_MANY };
        const started = async (checkout: Checkout, contender: string, ...args: string[]): Promise<Run> =>
            asked(await serving(checkout, contender, args, true), one, scale);
        const beside = (name: string, way: string, bar: string): Measurement => ({
            title: `${one.title}, ${CLIENTS} clients`,
            figures: withBars(FIGURES, { server: bar }),
            scanwire: (checkout) => started(checkout, 'scanwire-hosts', 'memory', '', String(one.hosts)),
            peers: async () => [{ name, run: await started(own, 'bare-hosts', way, String(one.hosts)) }],
        });
        return {
            measurements: [
                beside('node:http with the same check of keys', 'http', '≤ 2.00 ×'),
                beside('bare hapi with the same check of keys', 'hapi', '≤ 1.15 ×'),
            ],
            close,
        };
    },
};

/** Servers that go on through all rounds, so that they are warm. */
export interface Servers {
    /** Starts one that prints the address of what is asked for and a key. */
    serving(checkout: Checkout, contender: string, args: readonly string[], oneCore?: boolean): Promise<IndexServer>;
    /** Ends all. */
    close(): Promise<void>;
}

export function servers(): Servers {
    const started: IndexServer[] = [];
    return {
        async serving(checkout: Checkout, contender: string, args: readonly string[], oneCore = false): Promise<IndexServer> {
            const server = await indexServer(checkout, contender, { args, oneCore });
            started.push(server);
            return server;
        },

        async close() {
            await Promise.all(started.map(({ process }) => process.stop()));
        },
    };
}

/** Each client has a connection of its own. The run throws Error for an answer that is no success. */
export function asked({ process: server, url, token }: IndexServer, requests: Requests, scale: number): Run {
    const { count, clients = CLIENTS, path, body: posted } = requests;
    const { origin, pathname } = new URL(url);
    const method = posted === undefined ? 'GET' : 'POST';
    const headers = { token, ...(posted !== undefined && { 'content-type': 'application/json' }) };
    return async () => {
        const pool = new Pool(origin, { connections: clients });
        const processes = { server: server.pid, ...(await serverProcesses(process.env)) };
        const latencies: number[] = [];
        let bytes = 0;
        let left = Math.ceil(count * scale);
        const client = async (): Promise<void> => {
            while (left > 0) {
                left -= 1;
                const begun = performance.now();
                const given = posted === undefined ? {} : { body: posted() };
                const { statusCode, body } = await pool.request({ method, path: pathname + path(left), headers, ...given });
                const answer = await body.bytes();
                latencies.push(performance.now() - begun);
                bytes += answer.length;
                if (statusCode >= 300) {
                    throw new Error(`${pathname}${path(left)} was answered ${statusCode}: ${Buffer.from(answer)}`);
                }
            }
        };

        const { result: seconds, cpu } = await withCpu(processes, left, () =>
            timed(() => Promise.all(Array.from({ length: clients }, client))),
        );
        await pool.close();
        const made = latencies.length;
        const { p50 = 0, p99 = 0 } = percentilesOf(latencies);
        return { perSecond: made / seconds, p50, p99, ...cpu, bytes: bytes / made };
    };
}
