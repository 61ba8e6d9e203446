import assert from 'node:assert';
import { createReadStream } from 'node:fs';
import { appendFile, copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import postgres from 'postgres';
import { testDatabase } from '../test/support/test-database.ts';
import type { Checkout } from './checkout.ts';
import { serverProcesses, timed, withCpu } from './cpu-time.ts';
import { filled } from './index-server.ts';
import { memoryMiB } from './processes.ts';
import { COPIED, type ScanFiles, scanFiles } from './scan-files.ts';
import { type Figure, type Figures, type Run, type Section, withBars } from './section.ts';
import { commandOn, SERVE } from './served-deployment.ts';
import { withServedHosts } from './served-hosts.ts';
import { showsDuring } from './shows.ts';
import { percentilesOf } from './steady.ts';

const HOSTS = 200_000;
const MANY = 1_000_000;
/** Shows of one host a second. */
const RATE = 20;

const FIGURES: Readonly<Record<string, Figure>> = {
    perSecond: { label: 'hosts/s', moreIsBetter: true },
    seconds: { label: 's', digits: 1 },
    server: { label: 'CPU of serve, µs a host' },
    postgres: { label: 'CPU of PostgreSQL, µs a host' },
    again: { label: 'the identical file again, times the first', digits: 2, bar: '≤ 0.30' },
    written: { label: '  rows of hosts, services, notes and vulns written', bar: '0' },
    others: { label: 'the same hosts in a file with other bytes, times the first', digits: 2 },
};

/** Imports into PostgreSQL, through `serve`, beside a `COPY` of the same rows of hosts and services into the same tables. */
export const imports: Section = {
    name: 'import',
    discarded: 0,
    mostRounds: 3,
    onRequest: true,

    async open({ own, scale }) {
        const hosts = Math.ceil(HOSTS * scale);
        const files = await scanFiles(hosts);
        const contents = new Set<string>();
        const copy: Run = () => copied(own, files, hosts, contents);
        const measurement = (form: string, file: string, bar: string) => ({
            title: `import of ${hosts.toLocaleString('en')} hosts with 4 services each, ${form}, PostgreSQL`,
            figures: withBars(FIGURES, { perSecond: bar }),
            scanwire: async (checkout: Checkout) => () => imported(checkout, file, hosts, contents),
            peers: async () => [{ name: 'COPY', run: copy }],
        });
        return {
            measurements: [measurement('JSON lines', files.jsonl, '≥ 0.33 ×'), measurement('XML of nmap', files.xml, '≥ 0.20 ×')],
            close: files.close,
        };
    },
};

const EMBEDDED: Readonly<Record<string, Figure>> = {
    seconds: { label: 's', digits: 1, bar: '≤ 180' },
    perSecond: { label: 'hosts/s', moreIsBetter: true },
    p99: { label: 'show of a host p99 meanwhile, ms', digits: 1 },
    longest: { label: 'the longest, ms', digits: 1, bar: '≤ 250' },
    failed: { label: 'shows that failed', bar: '0' },
    server: { label: 'CPU of serve, µs a host' },
    again: { label: 'the identical file again, times the first', digits: 2, bar: '≤ 0.30' },
    againLongest: { label: '  the longest show, ms', digits: 1, bar: '≤ 250' },
    others: { label: 'the same hosts in a file with other bytes, times the first', digits: 2 },
    othersLongest: { label: '  the longest show, ms', digits: 1, bar: '≤ 250' },
    peakMiB: { label: 'most memory that serve has held, MiB' },
};

/** Imports into the embedded database of `serve`, and what others notice of it. */
export const embeddedImport: Section = {
    name: 'import-embedded',
    discarded: 0,
    mostRounds: 3,
    onRequest: true,

    async open({ scale }) {
        const hosts = Math.ceil(HOSTS * scale);
        const files = await scanFiles(hosts);
        const measurement = (form: string, file: string) => ({
            title: `import of ${hosts.toLocaleString('en')} hosts with 4 services each, ${form}, embedded, beside ${RATE} shows of a host a second`,
            figures: EMBEDDED,
            scanwire: async (checkout: Checkout) => () => importedBesideShows(checkout, file, hosts),
        });
        return { measurements: [measurement('JSON lines', files.jsonl), measurement('XML of nmap', files.xml)], close: files.close };
    },
};

/** Whether five times as much takes five times as long. */
export const millionImport: Section = {
    name: 'import-million',
    discarded: 0,
    mostRounds: 1,
    onRequest: true,

    async open({ scale }) {
        const [few, many] = [Math.ceil(HOSTS * scale), Math.ceil(MANY * scale)];
        const [less, more] = [await scanFiles(few), await scanFiles(many)];
        const run =
            (checkout: Checkout): Run =>
            async () => {
                const seconds = async (file: string): Promise<number> => {
                    const figures = await withServedHosts(checkout, async ({ run }) => ({
                        seconds: await timed(() => run('import', file)),
                    }));
                    return figures.seconds ?? Number.NaN;
                };
                const [first, second] = [await seconds(less.jsonl), await seconds(more.jsonl)];
                return { first, second, growth: second / many / (first / few) };
            };
        return {
            measurements: [
                {
                    title: `import of ${many.toLocaleString('en')} hosts with 4 services each, JSON lines, embedded`,
                    figures: {
                        first: { label: `${few.toLocaleString('en')} hosts, s`, digits: 1 },
                        second: { label: `${many.toLocaleString('en')} hosts, s`, digits: 1 },
                        growth: { label: 'time of a host among these, times that among those', digits: 2, bar: '≤ 1.10' },
                    },
                    scanwire: async (checkout) => run(checkout),
                },
            ],

            async close() {
                await Promise.all([less.close(), more.close()]);
            },
        };
    },
};

async function imported(checkout: Checkout, file: string, hosts: number, contents: Set<string>): Promise<Figures> {
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
    const database = await testDatabase();
    const command = commandOn(checkout, join(folder, 'data'), { DATABASE_URL: database.url });
    const rows = postgres(database.url, { max: 1 });
    try {
        const { pid = 0 } = await command.start(...SERVE);
        const processes = { server: pid, ...(await serverProcesses({ DATABASE_URL: database.url })) };
        const { result: seconds, cpu } = await withCpu(processes, hosts, () => timed(() => command.run('import', file)));
        assert.strictEqual(contents.add(await contentsOf(rows)).size, 1, 'an import and a COPY store the same');

        const begun = await one(rows, 'select pg_current_xact_id()::text as value');
        const again = await timed(() => command.run('import', file));
        const written = Number(await one(rows, WRITTEN, begun));
        assert.strictEqual(contents.add(await contentsOf(rows)).size, 1, 'a file that is imported again changes nothing');
        const blank = await withBlank(file, folder);
        const others = await timed(() => command.run('import', blank));
        return { seconds, perSecond: hosts / seconds, ...cpu, again: again / seconds, written, others: others / seconds };
    } finally {
        await rows.end();
        await command.end();
        await database.drop();
        await rm(folder, { recursive: true });
    }
}

/** A copy of a file with a blank more at its end, which no reader minds. */
export async function withBlank(file: string, folder: string): Promise<string> {
    const copy = join(folder, 'blank');
    await copyFile(file, copy);
    await appendFile(copy, '\n');
    return copy;
}

/** The peer's part, into tables as the checkout makes them. */
async function copied(checkout: Checkout, { rows: files }: ScanFiles, hosts: number, contents: Set<string>): Promise<Figures> {
    const database = await testDatabase();
    const rows = postgres(database.url, { max: 1 });
    try {
        await filled(checkout, 'postgres', database.url, 0);
        const processes = await serverProcesses({ DATABASE_URL: database.url });
        const copy = async (): Promise<void> => {
            for (const table of ['hosts', 'services'] as const) {
                const copying = rows.unsafe(`copy scanwire.${table} (${COPIED[table].join(', ')}) from stdin`);
                await pipeline(createReadStream(files[table]), await copying.writable());
            }
        };
        const { result: seconds, cpu } = await withCpu(processes, hosts, () => timed(copy));
        contents.add(await contentsOf(rows));
        return { seconds, perSecond: hosts / seconds, ...cpu };
    } finally {
        await rows.end();
        await database.drop();
    }
}

async function one(rows: postgres.Sql, query: string, ...values: string[]): Promise<string> {
    const [row] = await rows.unsafe<{ value: string }[]>(query, values);
    return row?.value ?? '';
}

const IMPORTED = ['hosts', 'services', 'notes', 'vulns'];

/** How many rows of the inventory were written since a transaction. When each host was last seen is in another table, and is written with every import. */
const WRITTEN = `
select count(*)::text as value
from (${IMPORTED.map((table) => `select xmin from scanwire.${table}`).join(' union all ')}) rows
where age(rows.xmin) < age($1::text::xid8::xid)`;

/** How many hosts and services there are, and a digest of what a file says of them. */
async function contentsOf(rows: postgres.Sql): Promise<string> {
    return await one(
        rows,
        `select concat_ws(' ', count(*), count(distinct h.id), sum(hashtextextended(concat_ws('|', host(h.address), h.name, h.state, h.mac, h.os_name,
            h.os_flavor, h.service_count, s.port, s.proto, s.state, s.name, s.info), 0))) as value
        from scanwire.hosts h left join scanwire.services s on s.host_id = h.id`,
    );
}

/** Of an import, as far as it is asked for here. */
interface Summary {
    readonly hosts: { readonly new: number; readonly unchanged: number };
    readonly services: { readonly new: number; readonly unchanged: number };
}

function importedBesideShows(checkout: Checkout, file: string, hosts: number): Promise<Figures> {
    return withServedHosts(checkout, async ({ host, pid, run }) => {
        const importing = (told: 'new' | 'unchanged', from: string = file): Promise<number> =>
            timed(async () => {
                const summary = JSON.parse(await run('import', from, '--json')) as Summary;
                assert.deepStrictEqual([summary.hosts[told], summary.services[told]], [hosts, hosts * 4]);
            });
        const { result: first, cpu } = await withCpu({ server: pid }, hosts, () => showsDuring(host, RATE, () => importing('new')));
        const { result: seconds, latencies, failed } = first;
        const again = await showsDuring(host, RATE, () => importing('unchanged'));
        const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
        const blank = await withBlank(file, folder);
        const others = await showsDuring(host, RATE, () => importing('unchanged', blank));
        await rm(folder, { recursive: true });
        return {
            seconds,
            perSecond: hosts / seconds,
            p99: percentilesOf(latencies).p99 ?? Number.NaN,
            longest: Math.max(...latencies),
            failed: failed + again.failed + others.failed,
            ...cpu,
            again: again.result / seconds,
            againLongest: Math.max(...again.latencies),
            others: others.result / seconds,
            othersLongest: Math.max(...others.latencies),
            peakMiB: await memoryMiB(pid, 'VmHWM'),
        };
    });
}
