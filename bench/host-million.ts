import pg from 'pg';
import { request } from 'undici';
import type { Checkout } from './checkout.ts';
import { serverProcesses, withCpu } from './cpu-time.ts';
import { type HostDatabase, hostDatabase, type IndexServer, indexServer } from './index-server.ts';
import { child, memoryMiB } from './processes.ts';
import type { IndexRead } from './read-index.ts';
import { type Figure, type Figures, ofEach, type Run, type Section, withBars } from './section.ts';
import { shows, showsDuring } from './shows.ts';
import { percentilesOf } from './steady.ts';

const HOSTS = 1_000_000;
/** Networks of /8 that the hosts are in, one after the other. */
const NETWORKS = 8;
/** How long ago the first of them was changed last; the others since, evenly. */
const DAYS = 30;
/** Shows of one host a second. */
const RATE = 100;
/** Of which a thousand shows have a 99th percentile that is more than the third worst. */
const ALONE_SECONDS = 10;
/** Who read the index at once before anything is counted. */
const WARMING = 4;

/** Of shows of one host, alone and while an index is read. */
export const SHOWS_BESIDE: Readonly<Record<'alone' | 'p99' | 'times' | 'longest' | 'failed', Figure>> = {
    alone: { label: 'show of a host p99 before, ms', digits: 1 },
    p99: { label: 'show of a host p99 meanwhile, ms', digits: 1 },
    times: { label: 'meanwhile, times before', digits: 2 },
    longest: { label: 'the longest, ms', digits: 1 },
    failed: { label: 'shows that failed', bar: '0' },
};

const INDEX: Readonly<Record<string, Figure>> = {
    seconds: { label: 's', digits: 2 },
    firstByteMs: { label: 'first byte, ms', digits: 1, bar: '≤ 20' },
    overIdleMiB: { label: 'peak memory of the server over idle, MiB', bar: '≤ 100' },
    ...withBars(SHOWS_BESIDE, { p99: '≤ 20' }),
    server: { label: 'CPU of the server, µs a host', digits: 1 },
    postgres: { label: 'CPU of PostgreSQL, µs a host', digits: 1 },
    mebibytes: { label: 'body, MiB', digits: 1 },
};

/** Where a look of so many is, from 0 to 1. */
type Query = (place: number, hosts: number) => string;

/** The start of the address of the host at a place: of its /8, /16 or /24. */
function prefixAt(place: number, hosts: number, bytes: 1 | 2 | 3): string {
    const size = Math.ceil(hosts / NETWORKS);
    const [network, within] = [Math.floor((place * hosts) / size), Math.floor(place * hosts) % size];
    const all = [10 + network, within >> 16, (within >> 8) & 255];
    return [...all.slice(0, bytes), ...Array(4 - bytes).fill(0)].join('.');
}

const idAt = (place: number, hosts: number): number => Math.floor(place * hosts);
const sinceDaysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString();

/** Pages of 100, by their names in the table. */
const PAGES: Readonly<Record<string, { readonly label: string; readonly bar: number; readonly query: Query }>> = {
    anywhere: { label: 'anywhere', bar: 3, query: (...at) => `after=${idAt(...at)}` },
    block24: { label: 'of a /24', bar: 10, query: (...at) => `address=${prefixAt(...at, 3)}/24` },
    block16: { label: 'of a /16', bar: 10, query: (...at) => `address=${prefixAt(...at, 2)}/16` },
    block8: { label: 'of a /8', bar: 10, query: (...at) => `address=${prefixAt(...at, 1)}/8` },
    within8: { label: 'anywhere in a /8', bar: 10, query: (...at) => `address=${prefixAt(...at, 1)}/8&after=${idAt(...at)}` },
    updated: { label: 'updated since a time', bar: 10, query: (place) => `updated_since=${sinceDaysAgo(DAYS * (1 - place))}` },
};

/** Each the time of all statements that the database has run for one page. */
const PAGE_FIGURES: Readonly<Record<string, Figure>> = Object.fromEntries(
    Object.entries(PAGES).flatMap(([name, { label, bar }]) => [
        [name, { label: `${label}, median, ms in the database`, digits: 2, bar: `≤ ${bar}` }],
        [`${name}P95`, { label: '  p95', digits: 2, bar: `≤ ${bar}` }],
    ]),
);

const LOOKS = 40;

/** The index of a million hosts, who is kept waiting by it, and pages of them. */
export const million: Section = {
    name: 'million',
    discarded: 0,
    mostRounds: 3,
    onRequest: true,

    async open({ scale }) {
        const hosts = Math.ceil(HOSTS * scale);
        const databases = ofEach((checkout) => filledBySql(checkout, hosts));
        const served =
            (checkout: Checkout, task: (server: IndexServer, database: HostDatabase) => Promise<Figures>): Run =>
            async () => {
                const database = await databases.of(checkout);
                const server = await indexServer(checkout, 'scanwire-hosts', { args: ['postgres', database.url] });
                try {
                    return await task(server, database);
                } finally {
                    await server.process.stop();
                }
            };
        return {
            measurements: [
                {
                    title: `index of ${hosts.toLocaleString('en')} hosts, PostgreSQL, beside ${RATE} shows of a host a second`,
                    figures: INDEX,
                    scanwire: async (checkout) => served(checkout, (server) => readBesideShows(checkout, server, hosts)),
                },
                {
                    title: `limit=100 in ${hosts.toLocaleString('en')} hosts, PostgreSQL`,
                    figures: PAGE_FIGURES,
                    scanwire: async (checkout) => served(checkout, (server, database) => looks(server, database, hosts)),
                },
            ],

            async close() {
                await Promise.all((await databases.all()).map(({ drop }) => drop()));
            },
        };
    },
};

/** By SQL: an import takes its time, and changes all hosts at once. */
async function filledBySql(checkout: Checkout, hosts: number): Promise<HostDatabase> {
    const database = await hostDatabase(checkout, 0);
    const client = new pg.Client(database.url);
    await client.connect();
    try {
        await client.query(FILL, [hosts, NETWORKS, DAYS, database.workspace]);
        await client.query('vacuum analyze');
        await client.query('create extension if not exists pg_stat_statements');
        await client.query(`alter database ${client.database} set pg_stat_statements.track_planning = on`);
    } finally {
        await client.end();
    }
    return database;
}

/** In the order of their addresses, from `10.0.0.1` on in each network. */
const FILL = `
insert into scanwire.hosts (workspace_id, address, name, state, mac, os_name, os_flavor, os_sp, purpose, info, comments, created_at, updated_at)
select
    $4::integer, ('10.0.0.0'::inet + ((g.i - 1) / n.size) * 16777216) + ((g.i - 1) % n.size + 1),
    'host-' || g.i || '.example.com', 'alive', '00:50:56:00:01:02', 'Linux', '5.X', '12', 'server', 'rack ' || g.i % 40,
    'seen by the weekly scan', now() - $3::integer * interval '1 day', now() - $3::integer * interval '1 day' * (1 - g.i / $1::float8)
from (select ceil($1::float8 / $2::integer)::bigint as size) n
cross join generate_series(1, $1::bigint) g (i)
order by g.i`;

/** @param readers How many read it at once. */
export async function readBesideShows(
    checkout: Checkout,
    { process: server, url, token }: IndexServer,
    hosts: number,
    readers = 1,
): Promise<Figures> {
    const host = { url: `${url}/1`, key: token };
    const read = (count: number): Promise<IndexRead> => child(checkout, 'read-index', { args: [url, token, String(count)] });
    // The first ones make connections and code.
    await shows(host, RATE, RATE);
    const idleMiB = await memoryMiB(server.pid, 'VmRSS');
    await read(Math.min(readers, WARMING));
    const alone = percentilesOf((await shows(host, RATE, RATE * ALONE_SECONDS)).latencies);
    await server.resetPeak();
    const processes = { server: server.pid, ...(await serverProcesses(process.env)) };
    const { result: made, cpu } = await withCpu(processes, hosts * readers, () => showsDuring(host, RATE, () => read(readers)));
    const { result, latencies, failed } = made;
    const [before = Number.NaN, meanwhile = Number.NaN] = [alone.p99, percentilesOf(latencies).p99];
    return {
        ...result,
        ...cpu,
        overIdleMiB: (await server.peakMiB()) - idleMiB,
        alone: before,
        p99: meanwhile,
        times: meanwhile / before,
        longest: Math.max(...latencies),
        failed,
    };
}

async function looks({ url, token }: IndexServer, database: HostDatabase, hosts: number): Promise<Figures> {
    const client = new pg.Client(database.url);
    await client.connect();
    try {
        const figures: Record<string, number> = {};
        for (const [name, { query }] of Object.entries(PAGES)) {
            const times: number[] = [];
            // The first ones make connections and plans.
            for (let look = -8; look < LOOKS; look += 1) {
                const spent = await spentOn(client, () => page(`${url}?limit=100&${query(Math.abs(look) / LOOKS, hosts)}`, token));
                if (look >= 0) {
                    times.push(spent);
                }
            }
            const { p50 = 0, p95 = 0 } = percentilesOf(times);
            Object.assign(figures, { [name]: p50, [`${name}P95`]: p95 });
        }
        return figures;
    } finally {
        await client.end();
    }
}

/** Milliseconds of planning and execution of all that others ask of the database meanwhile. */
async function spentOn(client: pg.Client, task: () => Promise<void>): Promise<number> {
    await client.query('select pg_stat_statements_reset(0, (select oid from pg_database where datname = current_database()), 0)');
    await task();
    const { rows } = await client.query<{ spent: number }>(SPENT);
    return rows[0]?.spent ?? 0;
}

const SPENT = `
select sum(s.total_exec_time + s.total_plan_time)::float8 as spent
from pg_stat_statements s
join pg_database d on d.oid = s.dbid
where d.datname = current_database() and s.query not like '%pg_stat_statements%'`;

async function page(url: string, token: string): Promise<void> {
    const { statusCode, body } = await request(url, { headers: { token } });
    const rows = (await body.json()) as unknown[];
    if (statusCode !== 200 || rows.length === 0) {
        throw new Error(`${url} was answered with ${statusCode} and ${rows.length} rows`);
    }
}
