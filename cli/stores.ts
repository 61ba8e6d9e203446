import type pg from 'pg';
import { openEmbeddedDatabase } from '../adapters/pglite/index.ts';
import { migrate, type PoolLike, type PostgresStores, postgresStores } from '../adapters/postgres/index.ts';
import { ScanwireError } from '../lib/scanwire-error.ts';
import type { DataFolder } from './data-folder.ts';

/** The database of a deployment, its schema up to date. */
export interface Stores extends PostgresStores {
    /** A `pg.Pool`, or the embedded database that has the form of one. */
    readonly pool: PoolLike & Pick<pg.Pool, 'end' | 'options'>;
    /** True for the database that lives in the data folder, which no other process can have open. */
    readonly embedded: boolean;
    /** Ids of the migrations that ran at this opening. */
    readonly applied: readonly string[];
    migrate(): Promise<readonly string[]>;
}

/** Beyond what the stores need at once, others wait. */
const CONNECTIONS = 20;
const CONNECT_TIMEOUT = 5_000;

/** Opens PostgreSQL at `url`, the embedded database of the folder without one. */
export async function openStores(folder: DataFolder, url: string | undefined, onError: (error: Error) => void): Promise<Stores> {
    const pool = (url === undefined ? await openEmbeddedDatabase({ folder: folder.database }) : await connect(url)) as Stores['pool'] &
        pg.Pool;
    // An idle connection was lost; the pool makes a new one, and an unheard error would end the process.
    pool.on('error', onError);
    try {
        const applied = await migrate(pool);
        return {
            ...postgresStores({ pool }),
            pool,
            embedded: url === undefined,
            applied,
            migrate: () => migrate(pool),
        };
    } catch (error) {
        await pool.end();
        throw error;
    }
}

async function connect(connectionString: string): Promise<pg.Pool> {
    const { Pool } = (await import('pg')).default;
    if (!/^postgres(ql)?:\/\//.test(connectionString)) {
        throw new ScanwireError('MISCONFIGURED', 'DATABASE_URL must be a URL that begins with postgres://', { field: 'DATABASE_URL' });
    }

    return new Pool({ connectionString, max: CONNECTIONS, connectionTimeoutMillis: CONNECT_TIMEOUT });
}
