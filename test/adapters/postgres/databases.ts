import pg from 'pg';
import { openMemoryDatabase } from '../../../adapters/pglite/index.ts';
import { migrate, type PoolLike } from '../../../adapters/postgres/index.ts';
import { testDatabase } from '../../support/test-database.ts';

export interface OpenDatabase {
    readonly pool: PoolLike & { readonly options: object; end(): Promise<void> };
    stop(): Promise<void>;
}

/** Ways to a database that is empty, with no schema of ours. */
export const databases: readonly { readonly name: string; open(): Promise<OpenDatabase> }[] = [
    {
        name: 'PostgreSQL',
        async open() {
            const { url, drop } = await testDatabase();
            const pool = new pg.Pool({ connectionString: url, max: 20 });
            // The pool has ended before its connections have; the drop may still meet one of them.
            pool.on('error', () => {});
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

/** Brings the database to where a fresh one is after its migrations. */
export async function startAfresh(pool: PoolLike): Promise<void> {
    await migrate(pool);
    await pool.query('truncate scanwire.workspaces, scanwire.api_keys, scanwire.records, scanwire.tombstones restart identity cascade');
    await pool.query(`insert into scanwire.workspaces (name) values ('default')`);
}
