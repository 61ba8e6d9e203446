import pg from 'pg';
import { present } from '../../../adapters/contract/assertions.ts';
import { openMemoryDatabase } from '../../../adapters/pglite/index.ts';
import { migrate, type PoolLike } from '../../../adapters/postgres/index.ts';
import { testDatabase } from '../../support/test-database.ts';

export interface OpenDatabase {
    readonly pool: PoolLike & { readonly options: object; end(): Promise<void> };
    stop(): Promise<void>;
}

export interface TestedDatabase {
    readonly name: string;
    /** One that is empty, with no schema of ours. */
    open(): Promise<OpenDatabase>;
}

export const databases: readonly TestedDatabase[] = [
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

/** The one of this name. @throws Error when there is none. */
export function databaseNamed(name: string): TestedDatabase {
    return present(
        databases.find((one) => one.name === name),
        name,
    );
}

/** Brings the database to where a fresh one is after its migrations. */
export async function startAfresh(pool: PoolLike): Promise<void> {
    await migrate(pool);
    await pool.query('truncate scanwire.workspaces, scanwire.api_keys, scanwire.records, scanwire.tombstones restart identity cascade');
    await pool.query(`insert into scanwire.workspaces (name) values ('default')`);
}
