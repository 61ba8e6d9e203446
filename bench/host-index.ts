import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scanDatabase } from '../test/adapters/scan-database/scan-database.ts';
import type { Checkout } from './checkout.ts';
import { median } from './comparison.ts';
import { serverProcesses, withCpu } from './cpu-time.ts';
import { readBesideShows, SHOWS_BESIDE } from './host-million.ts';
import { filled, hostDatabase, type IndexServer, indexServer } from './index-server.ts';
import { memoryMiB } from './processes.ts';
import { type IndexRead, readIndex } from './read-index.ts';
import { type Figure, ofEach, type Peer, type Run, type Section, withBars } from './section.ts';

const HOSTS = 100_000;
/** As many indexes as are sent at once where nobody says otherwise. */
const READERS = 32;
/** In a run after one that warms up; several, since CPU time is counted in coarse steps. */
const READINGS = 3;

const FIGURES: Readonly<Record<string, Figure>> = {
    seconds: { label: 's', digits: 2 },
    firstByteMs: { label: 'first byte, ms' },
    server: { label: 'CPU of the server, µs a host', digits: 1 },
    postgres: { label: 'CPU of PostgreSQL, µs a host', digits: 1 },
    overIdleMiB: { label: 'peak memory of the server over idle, MiB' },
    mebibytes: { label: 'body, MiB', digits: 1 },
};

/** The index of many hosts: of our own tables and of a scan database beside a hand-written fastify route, and of the embedded database. */
export const hostIndex: Section = {
    name: 'index',
    discarded: 0,

    async open({ own, scale }) {
        const hosts = Math.ceil(HOSTS * scale);
        const title = `index of ${hosts.toLocaleString('en')} hosts`;
        const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
        const scanned = await filledScanDatabase(hosts);
        const scanwire = (checkout: Checkout, kind: string, place: string): Run =>
            reading(hosts, () => indexServer(checkout, 'scanwire-hosts', { args: [kind, place] }));
        const fastify = (...args: string[]): Peer => ({
            name: 'fastify + pg',
            run: reading(hosts, () => indexServer(own, 'fastify-hosts', { args })),
        });
        const ownTables = ofEach(async (checkout) => {
            const database = await hostDatabase(checkout, hosts);
            return { database, run: scanwire(checkout, 'postgres', database.url) };
        });
        return {
            measurements: [
                {
                    title,
                    figures: withBars(FIGURES, { seconds: '≤ 0.30 ×', server: '≤ 0.20 ×', overIdleMiB: '≤ 60' }),
                    scanwire: async (checkout) => (await ownTables.of(checkout)).run,

                    async peers() {
                        const { url, workspace } = (await ownTables.of(own)).database;
                        return [fastify(url, 'scanwire.hosts', workspace)];
                    },
                },
                {
                    title: `${title}, of a scan database`,
                    figures: withBars(FIGURES, { seconds: '≤ 0.50 ×', server: '≤ 0.25 ×' }),
                    scanwire: async (checkout) => scanwire(checkout, 'scan-database', scanned.url),
                    peers: async () => [fastify(scanned.url, 'hosts', '1')],
                },
                {
                    title: `${title}, embedded`,
                    figures: withBars(FIGURES, { seconds: '≤ 3 ×' }),

                    async scanwire(checkout) {
                        const place = await mkdtemp(join(folder, 'data-'));
                        await filled(checkout, 'embedded', place, hosts);
                        return scanwire(checkout, 'embedded', place);
                    },

                    peers: async () => [{ name: 'PostgreSQL', run: (await ownTables.of(own)).run }],
                },
                {
                    title: `shows of a host beside ${READERS} who read the ${title}`,
                    figures: withBars(SHOWS_BESIDE, { times: '≤ 3' }),

                    async scanwire(checkout) {
                        const { url } = (await ownTables.of(checkout)).database;
                        return async () => {
                            const server = await indexServer(checkout, 'scanwire-hosts', { args: ['postgres', url] });
                            try {
                                return await readBesideShows(checkout, server, hosts, READERS);
                            } finally {
                                await server.process.stop();
                            }
                        };
                    },
                },
            ],

            async close() {
                await Promise.all([scanned.stop(), ...(await ownTables.all()).map(({ database }) => database.drop())]);
                await rm(folder, { recursive: true });
            },
        };
    },
};

/** With values as in our own tables. */
async function filledScanDatabase(hosts: number): Promise<Awaited<ReturnType<typeof scanDatabase>>> {
    const database = await scanDatabase(hosts);
    await database.pool.query(`update hosts set name = 'host-' || id || '.example.com', mac = '00:50:56:00:01:02', os_name = 'Linux',
        os_flavor = '5.X', os_sp = '12', purpose = 'server', info = 'rack ' || id % 40, comments = 'seen by the weekly scan'`);
    await database.pool.query('vacuum analyze');
    return database;
}

/** Each run by a server of its own, since one process may hold more memory than another of the same program. */
function reading(hosts: number, start: () => Promise<IndexServer>): Run {
    return async () => {
        const { process: server, url, token } = await start();
        try {
            await readIndex(`${url}/1`, token);
            const idleMiB = await memoryMiB(server.pid, 'VmRSS');
            await readIndex(url, token);
            const processes = { server: server.pid, ...(await serverProcesses(process.env)) };
            await server.resetPeak();
            const answers: IndexRead[] = [];
            const { cpu } = await withCpu(processes, hosts * READINGS, async () => {
                while (answers.length < READINGS) {
                    answers.push(await readIndex(url, token));
                }
            });
            const of = (name: keyof IndexRead): number => median(answers.map((answer) => answer[name]));
            const [seconds, firstByteMs, mebibytes] = [of('seconds'), of('firstByteMs'), of('mebibytes')];
            return { seconds, firstByteMs, mebibytes, ...cpu, overIdleMiB: (await server.peakMiB()) - idleMiB };
        } finally {
            await server.stop();
        }
    };
}
