/** A client of the application's own before the driver's: it may know of promises only, and is told of nothing else. */
import pg from 'pg';
import t from 'tap';
import { postgresInventory } from '../../adapters/postgres/index.ts';
import { migratedDatabase } from '../support/migrated-database.ts';

/** What it was asked for: a statement with a name comes as an object, as node-postgres takes it. */
const asked: unknown[] = [];

class Wrapping extends pg.Client {
    // biome-ignore lint/suspicious/noExplicitAny: as applications write it
    override async query(...given: any[]): Promise<any> {
        const result = await super.query(...(given as [string]));
        asked.push(given[0], (result as pg.QueryResult).rowCount);
        return result;
    }
}

/** As tools for measuring do it to each new connection. */
function wrapped(client: pg.PoolClient): void {
    const query = client.query.bind(client) as (...given: unknown[]) => Promise<pg.QueryResult>;
    Object.assign(client, {
        async query(...given: unknown[]) {
            const result = await query(...given);
            asked.push(given[0], result.rowCount);
            return result;
        },
    });
}

t.test('a client whose query is wrapped answers by its promise, with and without names', async (t) => {
    const { url, drop } = await migratedDatabase();
    t.teardown(drop);
    const subclassed = new pg.Pool({ connectionString: url, Client: Wrapping } as pg.PoolConfig);
    const patched = new pg.Pool({ connectionString: url });
    patched.on('connect', wrapped);
    for (const pool of [subclassed, patched]) {
        for (const prepare of [true, false]) {
            asked.length = 0;
            const { workspaces } = postgresInventory({ pool, prepare });
            t.match(await workspaces.get([], 1), { id: 1, name: 'default' });
            t.ok(asked.length >= 2, 'it was asked, and has seen the result');
            t.equal(
                asked.some((one) => typeof one === 'object'),
                prepare,
            );
        }
        await pool.end();
    }
});
