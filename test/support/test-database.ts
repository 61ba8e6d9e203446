import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { required } from './required.ts';

/** A database of a test's own on the server of `DATABASE_URL`. */
export interface TestDatabase {
    readonly url: string;
    /** Drops it, whoever is still connected. */
    drop(): Promise<void>;
}

export async function testDatabase(): Promise<TestDatabase> {
    const server = required('DATABASE_URL');
    const name = `test_${randomBytes(6).toString('hex')}`;
    await administer(server, `CREATE DATABASE ${name}`);
    const url = new URL(server);
    url.pathname = `/${name}`;
    return { url: url.href, drop: () => administer(server, `DROP DATABASE ${name} WITH (FORCE)`) };
}

async function administer(url: string, statement: string): Promise<void> {
    const client = new pg.Client(url);
    await client.connect();
    try {
        await client.query(statement);
    } finally {
        await client.end();
    }
}
