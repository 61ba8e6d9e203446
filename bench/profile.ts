import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import type { Checkout } from './checkout.ts';
import { stretchOf, warmUp } from './pace.ts';
import type { Figures, Setting } from './section.ts';
import { cpuSince, type SenderUnderTest, withSender } from './senders.ts';

/** What of PostgreSQL has to be on, so that statements inside of functions are told, with their planning. */
export const PROFILE_SETTINGS: readonly string[] = ['pg_stat_statements.track=all', 'pg_stat_statements.track_planning=on'];

interface Profile {
    readonly nodes: readonly { readonly id: number; readonly callFrame: { readonly functionName: string; readonly url: string } }[];
    readonly samples: readonly number[];
    readonly timeDeltas: readonly number[];
}

/** How the deliveries come that are looked at. */
interface Pace {
    readonly title: string;
    /** Resolves with how many there were. */
    send(sender: SenderUnderTest): Promise<number>;
}

const WARM = 5_000;
const FULL_SPEED = 20_000;
const EVERYDAY = { rate: 100, seconds: 60 };
const MOST_ROWS = 20;

/**
 * Writes a page of Markdown about where the time of a delivery goes, on Redis + PostgreSQL with default options: statements, Redis commands,
 * functions of ours and packages, at an everyday rate and at full speed.
 */
export async function writeProfile(file: string, { own, scale }: Pick<Setting, 'own' | 'scale'>): Promise<void> {
    const paces: readonly Pace[] = [
        {
            title: `At ${EVERYDAY.rate} events a second`,
            async send(sender) {
                await stretchOf(sender, EVERYDAY, scale);
                return Math.ceil(EVERYDAY.rate * EVERYDAY.seconds * scale);
            },
        },
        {
            title: 'At full speed',
            async send(sender) {
                const count = Math.ceil(FULL_SPEED * scale);
                await sender.burst(count);
                await sender.finished(count);
                return count;
            },
        },
    ];
    const parts = [await headOf()];
    for (const pace of paces) {
        parts.push(await profiled(own, pace, Math.ceil(WARM * scale)));
    }
    await writeFile(file, `${parts.join('\n\n')}\n`);
}

async function headOf(): Promise<string> {
    const [{ model = '' } = {}] = cpus();
    const versions = { Node: process.version, PostgreSQL: await postgresVersion(), Redis: await redisVersion() };
    return [
        '# Where the time of a delivery goes',
        '<!-- Made by `npm run bench -- --profile docs/pace.md && npm run format`. -->',
        'One exporter with default options in a process that publishes and sends, PostgreSQL with `fsync`, Redis with an append-only file. Times depend on the',
        'machine; what counts is how they compare. A statement inside of a function is told as well as the function, and the telling has its cost.',
        '',
        `Made on ${cpus().length} cores (${model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GiB of memory, ${Object.entries(versions)
            .map(([name, version]) => `${name} ${version}`)
            .join(', ')}.`,
    ].join('\n');
}

async function profiled(checkout: Checkout, { title, send }: Pace, warm: number): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-profile-'));
    try {
        const execArgv = ['--cpu-prof', `--cpu-prof-dir=${folder}`];
        const servers = await withSender({ checkout, kind: 'servers', execArgv }, async (sender) => {
            await warmUp(sender, warm);
            return countedBy(sender, send);
        });
        const [file = ''] = await readdir(folder);
        return [`## ${title}`, servers, ...functionsOf(JSON.parse(await readFile(join(folder, file), 'utf8')))].join('\n\n');
    } finally {
        await rm(folder, { recursive: true });
    }
}

/** What both servers were asked meanwhile. */
async function countedBy(sender: SenderUnderTest, send: Pace['send']): Promise<string> {
    const database = new pg.Client({ connectionString: sender.store.urls.DATABASE_URL });
    const redis = new Redis(sender.store.urls.REDIS_URL ?? '');
    await database.connect();
    try {
        await database.query('create extension if not exists pg_stat_statements');
        await database.query('select pg_stat_statements_reset()');
        await redis.config('RESETSTAT');
        const before = await sender.cpu();
        const count = await send(sender);
        const cpu = await cpuSince(before, sender, count);
        return [cpuTable(cpu), await statementsOf(database, count), await commandsOf(redis, count)].join('\n\n');
    } finally {
        redis.disconnect();
        await database.end();
    }
}

function cpuTable(cpu: Figures): string {
    const rows = Object.entries(cpu).filter(([name]) => name !== 'all' && name !== 'cpu');
    return table(
        ['CPU', 'µs a delivery'],
        rows.map(([name, time]) => [name, time.toFixed(0)]),
    );
}

async function statementsOf(database: pg.Client, count: number): Promise<string> {
    const { rows } = await database.query<Record<'query' | 'calls' | 'execution' | 'planning' | 'pages', string>>(
        `select regexp_replace(s.query, '\\s+', ' ', 'g') as query, s.calls * 1000.0 / $1 as calls, s.total_exec_time * 1000 / s.calls as execution,
            s.total_plan_time * 1000 / s.calls as planning, (s.shared_blks_hit + s.shared_blks_read)::float8 / s.calls as pages
        from pg_stat_statements s join pg_database d on d.oid = s.dbid
        where d.datname = current_database() and s.calls > 0 and s.query not like '%pg_stat_statements%'
        order by s.total_exec_time + s.total_plan_time desc limit $2`,
        [count, MOST_ROWS],
    );
    return table(
        ['Statement', 'calls for 1,000', 'execution, µs a call', 'planning', 'pages'],
        rows.map(({ query, calls, execution, planning, pages }) => [
            `\`${query.replaceAll('|', '\\|').replaceAll('`', "'").trim().slice(0, 90)}\``,
            ...[calls, execution, planning, pages].map((figure) => Number(figure).toFixed(0)),
        ]),
    );
}

/** Also those that scripts call. */
async function commandsOf(redis: Redis, count: number): Promise<string> {
    const lines = (await redis.info('commandstats')).split(/\r?\n/);
    const rows = lines.flatMap((line) => {
        const [, name = '', calls = '', microseconds = ''] = /^cmdstat_([^:]+):calls=(\d+),usec=(\d+)/.exec(line) ?? [];
        return name === '' || name.startsWith('config') ? [] : [{ name, calls: Number(calls), microseconds: Number(microseconds) }];
    });
    return table(
        ['Redis command', 'calls for 1,000', 'µs a call'],
        rows
            .toSorted((a, b) => b.microseconds - a.microseconds)
            .slice(0, MOST_ROWS)
            .map(({ name, calls, microseconds }) => [name, ((calls * 1000) / count).toFixed(0), (microseconds / calls).toFixed(1)]),
    );
}

/** Own time of the process from its start to its end: by package, and by function of ours. */
function functionsOf({ nodes, samples, timeDeltas }: Profile): readonly string[] {
    const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
    const [packages, functions] = [new Map<string, number>(), new Map<string, number>()];
    for (const [index, id] of samples.entries()) {
        const { functionName = '', url = '' } = frames.get(id) ?? {};
        const owner = ownerOf(functionName, url);
        add(packages, owner, timeDeltas[index] ?? 0);
        if (owner === OWN) {
            add(
                functions,
                `${functionName === '' ? '(anonymous)' : functionName} in ${url.replace(/^.*\/dist\//, '')}`,
                timeDeltas[index] ?? 0,
            );
        }
    }

    packages.delete('(idle)');
    const total = [...packages.values()].reduce((sum, time) => sum + time, 0);
    return [
        table(['Package, or part of Node', 'share of the process, %'], sharesOf(packages, total)),
        table(['Function', 'share of the process, %'], sharesOf(functions, total)),
    ];
}

const OWN = 'scanwire';

function add(times: Map<string, number>, name: string, time: number): void {
    times.set(name, (times.get(name) ?? 0) + time);
}

function sharesOf(times: ReadonlyMap<string, number>, total: number): readonly (readonly string[])[] {
    const most = [...times].toSorted(([, a], [, b]) => b - a).slice(0, MOST_ROWS);
    return most.map(([name, time]) => [`\`${name}\``, ((time / total) * 100).toFixed(1)]);
}

function ownerOf(functionName: string, url: string): string {
    const [, scope] = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? [];
    if (scope !== undefined) {
        return scope;
    }

    if (url.startsWith('node:')) {
        return url.replace(/^(node:(?:internal\/)?[^/]+).*/, '$1');
    }

    if (url === '' || url.startsWith('wasm:')) {
        return functionName.startsWith('(') ? functionName : 'native';
    }

    return url.includes('/dist/') ? OWN : 'the bench';
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
    const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
    return [line(head), line(head.map((_, index) => (index === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}

async function postgresVersion(): Promise<string> {
    const database = new pg.Client({ connectionString: process.env.DATABASE_URL });
    await database.connect();
    try {
        const { rows } = await database.query<{ version: string }>(`select current_setting('server_version') as version`);
        return rows[0]?.version.replace(/ .*/, '') ?? '';
    } finally {
        await database.end();
    }
}

async function redisVersion(): Promise<string> {
    const redis = new Redis(process.env.REDIS_URL ?? '');
    try {
        return /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? '';
    } finally {
        redis.disconnect();
    }
}
