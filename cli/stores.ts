import type pg from 'pg';
import { memoryQueue } from '../adapters/memory/index.ts';
import { type EmbeddedFolder, openEmbeddedDatabase } from '../adapters/pglite/index.ts';
import { migrate, type PoolLike, type PostgresStores, postgresStores } from '../adapters/postgres/index.ts';
import { ScanwireError } from '../lib/errors.ts';
import { optionalPackage } from '../lib/optional-packages.ts';
import type { DeliveryQueue } from '../lib/webhooks/dispatching/delivery-queue.ts';
import type { DataFolder } from './data-folder.ts';

/** An embedded database is this process's alone, and rows are the truth: a queue that outlives the process would buy nothing. */
export async function queueBeside(stores: Stores): Promise<DeliveryQueue> {
    return stores.embedded ? memoryQueue() : await openPostgresQueue(stores);
}

/** The database of a deployment, its schema up to date. */
export interface Stores extends PostgresStores {
    /** A `pg.Pool`, or the embedded database that has the form of one. */
    readonly pool: PoolLike & Pick<pg.Pool, 'end' | 'options'>;
    /** True for the database that lives in the data folder, which no other process can have open. */
    readonly embedded: boolean;
    /** True behind a pooler of transactions, which keeps nothing for a session. */
    readonly pooled: boolean;
    /** The embedded database as a tar file; null for a server, which has tools of its own. */
    readonly dump: EmbeddedFolder['dump'] | null;
    /** Resolves when the embedded database has ended by itself; null for a server, which comes back. */
    readonly lost: Promise<void> | null;
    /** Ids of the migrations that ran at this opening. */
    readonly applied: readonly string[];
    migrate(): Promise<readonly string[]>;
}

/** Beyond what the stores need at once, others wait. */
const CONNECTIONS = 20;
const CONNECT_TIMEOUT = 5_000;
/** Idle connections are probed, so that neither end nor what lies between them forgets one. */
const KEEP_ALIVE = 10_000;

/** Where the database of a deployment is. */
export interface DatabaseAt {
    readonly url: string | undefined;
    /** Whether the URL leads to a pooler of transactions. */
    readonly pooled?: boolean;
}

/** Opens PostgreSQL at the URL, the embedded database of the folder without one. */
export async function openStores(
    folder: DataFolder,
    { url, pooled: isPooled = false }: DatabaseAt,
    onError: (error: Error) => void,
): Promise<Stores> {
    const own = url === undefined ? await openEmbeddedDatabase({ folder: folder.path }) : null;
    const pooled = own === null && isPooled;
    const pool = (own ?? (await connect(url ?? ''))) as Stores['pool'] & pg.Pool;
    // An idle connection was lost; the pool makes a new one, and an unheard error would end the process.
    pool.on('error', onError);
    try {
        const applied = await migrate(pool);
        return {
            ...postgresStores({ pool, prepare: !pooled, notify: !pooled }),
            pool,
            embedded: own !== null,
            pooled,
            dump: own?.dump ?? null,
            lost: own?.lost ?? null,
            applied,
            migrate: () => migrate(pool),
        };
    } catch (error) {
        await pool.end();
        throw error;
    }
}

async function connect(connectionString: string): Promise<pg.Pool> {
    const { Client, Pool } = (await optionalPackage('pg', 'DATABASE_URL', () => import('pg'))).default;
    if (!/^postgres(ql)?:\/\//.test(connectionString)) {
        throw new ScanwireError('MISCONFIGURED', 'DATABASE_URL must be a URL that begins with postgres://', { field: 'DATABASE_URL' });
    }
    try {
        // Nothing but this takes the text apart as the connections of the pool will.
        new Client({ connectionString });
    } catch (error) {
        throw unreadableUrl(error as NodeJS.ErrnoException);
    }

    // How long a statement may take is the stores' to say, which have some that take minutes.
    return new Pool({
        connectionString,
        max: CONNECTIONS,
        connectionTimeoutMillis: CONNECT_TIMEOUT,
        keepAlive: true,
        keepAliveInitialDelayMillis: KEEP_ALIVE,
    });
}

/** Without its cause, which holds the URL with its password. */
function unreadableUrl({ code, path }: NodeJS.ErrnoException): ScanwireError {
    const reason =
        path === undefined
            ? 'cannot be read as a URL: user and password in it must be percent-encoded (# as %23, / as %2F)'
            : `names a file that cannot be read: ${path} (${code})`;
    return new ScanwireError('MISCONFIGURED', `DATABASE_URL ${reason}`, { field: 'DATABASE_URL' });
}

// BullMQ is loaded where it is the queue: it is the largest package of all, and the embedded deployment has no use for it.
const bullmq = () => import('../adapters/bullmq/index.ts');

/** A queue in the database itself. @throws ScanwireError `MISCONFIGURED` behind a pooler of transactions, where it would hear of no job. */
export async function openPostgresQueue({ pool, pooled }: Pick<Stores, 'pool' | 'pooled'>): Promise<DeliveryQueue> {
    if (pooled) {
        const message =
            'REDIS_URL is not set: a queue on PostgreSQL listens for its jobs, which no pooler of transactions (--pooled) lets it do';
        throw new ScanwireError('MISCONFIGURED', message, { field: 'REDIS_URL' });
    }
    return (await bullmq()).postgresQueue({ pool });
}

/** A queue on Redis, with the prefix of the deployment or the one that was given. */
export async function openRedisQueue(url: string, onError: (error: Error) => void, prefix?: string): Promise<DeliveryQueue> {
    const { redisQueue } = await bullmq();
    const onWarning = (message: string): void => onError(new Error(message));
    try {
        return redisQueue({ url, onWarning, ...(prefix !== undefined && { prefix }) });
    } catch (cause) {
        const message = (cause as ScanwireError).message.replace('redisQueue options: url', 'REDIS_URL');
        throw new ScanwireError('MISCONFIGURED', message, { field: 'REDIS_URL', cause });
    }
}
