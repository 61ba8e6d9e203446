import { randomBytes } from 'node:crypto';
import { Pool } from 'pg';
import { migrate } from '../adapters/postgres/index.ts';
import { type Background, background } from './background.ts';
import { readIndex } from './read-index.ts';
import { type Medians, rounds } from './rounds.ts';

export interface IndexMedians {
    readonly seconds: number;
    readonly firstByteMs: number;
    readonly mebibytes: number;
    readonly peakMiB: number;
    readonly [figure: string]: number;
}

export const HOSTS = 100_000;

/** The index of 100,000 hosts from PostgreSQL, by scanwire and by a hand-written fastify route. */
export async function measureIndex(count: number): Promise<{ scanwire: Medians<IndexMedians>; fastify: Medians<IndexMedians> }> {
    const { url, drop } = await filledDatabase();
    const servers = await Promise.all([background('scanwire-index.js', [url]), background('fastify-index.js', [url, 'bench'])]);
    try {
        const [scanwire, fastify] = await rounds<IndexMedians>(servers.map(contender), count);
        return { scanwire, fastify } as { scanwire: Medians<IndexMedians>; fastify: Medians<IndexMedians> };
    } finally {
        await Promise.all(servers.map((server) => server.stop()));
        await drop();
    }
}

function contender(server: Background) {
    const [address = '', key = 'bench'] = server.firstLine.split(' ');
    return {
        name: address,
        async run(): Promise<IndexMedians> {
            await server.resetPeak();
            const figures = await readIndex(`${address}/rest_api/v2/workspaces/1/hosts`, key);
            return { ...figures, seconds: figures.seconds, peakMiB: await server.peakMiB() };
        },
    };
}

async function filledDatabase(): Promise<{ url: string; drop: () => Promise<void> }> {
    const admin = new Pool({ connectionString: process.env.DATABASE_URL, max: 1 });
    const name = `scanwire_bench_${randomBytes(6).toString('hex')}`;
    await admin.query(`create database ${name}`);
    const at = new URL(process.env.DATABASE_URL ?? '');
    at.pathname = `/${name}`;
    const pool = new Pool({ connectionString: at.href, max: 1 });
    await migrate(pool);
    await pool.query(
        `insert into scanwire.hosts (workspace_id, address, name, state, mac, os_name, os_flavor, os_sp, purpose, info, comments, created_at, updated_at)
        select 1, ('10.0.0.0'::inet + i), 'host-' || i || '.example.com', 'alive', '00:50:56:' || lpad(to_hex(i % 256), 2, '0') || ':01:02', 'Linux',
            'Debian', '12', 'server', 'rack ' || i % 40, 'seen by the weekly scan', now(), now()
        from generate_series(1, $1::int) i`,
        [HOSTS],
    );
    await pool.query('vacuum analyze scanwire.hosts');
    await pool.end();
    return {
        url: at.href,
        async drop() {
            await admin.query(`drop database ${name} with (force)`);
            await admin.end();
        },
    };
}
