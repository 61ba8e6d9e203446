import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { until } from '../../adapters/contract/assertions.ts';
import { required } from './required.ts';

/** A database of a test's own on the server of `DATABASE_URL`. */
export interface TestDatabase {
    readonly name: string;
    readonly url: string;
    /** Drops it, once those who have ended their connections are gone; who is connected after seconds is thrown out. */
    drop(): Promise<void>;
}

const PATIENCE = 3_000;

/** @param template The one of the server that it is a copy of, to which nobody is connected. */
export async function testDatabase(template = 'template1', server: string = required('DATABASE_URL')): Promise<TestDatabase> {
    const name = `test_${randomBytes(6).toString('hex')}`;
    await administer(server, (client) => client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`));
    const url = new URL(server);
    url.pathname = `/${name}`;
    return { name, url: url.href, drop: () => administer(server, (client) => dropDatabase(client, name)) };
}

/** The server notices the end of a connection after its client does, and one that is thrown out reports an error. */
async function dropDatabase(client: pg.Client, name: string): Promise<void> {
    const giveUp = Date.now() + PATIENCE;
    await until(async () => {
        const { rows } = await client.query('SELECT FROM pg_stat_activity WHERE datname = $1', [name]);
        return rows.length === 0 || Date.now() > giveUp;
    });
    await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
}

async function administer(url: string, task: (client: pg.Client) => Promise<unknown>): Promise<void> {
    const client = new pg.Client(url);
    await client.connect();
    try {
        await task(client);
    } finally {
        await client.end();
    }
}
