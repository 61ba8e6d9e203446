import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { openMemoryDatabase } from '../../../adapters/pglite/index.ts';
import { migrate, type PoolLike } from '../../../adapters/postgres/index.ts';

export interface TestDatabase {
    readonly pool: PoolLike;
    stop(): Promise<void>;
}

/** Ways to a database that is empty, with no schema of ours. */
export const databases: readonly { readonly name: string; open(): Promise<TestDatabase> }[] = [
    {
        name: 'PostgreSQL',
        async open() {
            const { url, drop } = await createDatabase();
            const pool = new pg.Pool({ connectionString: url, max: 5 });
            return {
                pool,
                async stop() {
                    await pool.end();
                    await drop();
                },
            };
        },
    },
    {
        name: 'PGlite',
        async open() {
            const pool = await openMemoryDatabase();
            return { pool, stop: () => pool.end() };
        },
    },
];

/** A database of its own on the server of `DATABASE_URL`. */
export async function createDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
    const server = process.env.DATABASE_URL;
    if (server === undefined) {
        throw new Error('Missing DATABASE_URL: these tests need a PostgreSQL server');
    }

    const name = `scanwire_${randomUUID().replaceAll('-', '')}`;
    await onServer(server, `create database ${name}`);
    const url = new URL(server);
    url.pathname = `/${name}`;
    return { url: url.href, drop: () => onServer(server, `drop database ${name} with (force)`) };
}

async function onServer(url: string, sql: string): Promise<void> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
        await client.query(sql);
    } finally {
        await client.end();
    }
}

/** Brings the database to where a fresh one is after its migrations. */
export async function startAfresh(pool: PoolLike): Promise<void> {
    await migrate(pool);
    await pool.query('truncate scanwire.workspaces, scanwire.api_keys restart identity cascade');
    await pool.query(`insert into scanwire.workspaces (name) values ('default')`);
}
