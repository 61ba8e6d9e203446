import type { Pool, PoolClient, PoolConfig } from 'pg';
import { ScanwireError } from '../../lib/errors.ts';
import type { Executor } from '../../lib/transaction.ts';

/** A `pg.Pool`, the embedded database's included. Only its settings are used. */
export interface HostPool {
    readonly options: object;
    connect(): Promise<unknown>;
    end(): Promise<void>;
}

const CONNECTION_TIMEOUT = 5_000;
/** Idle connections are probed from then on. */
const KEEP_ALIVE = 10_000;
/** For a server that takes statements and never answers; far above what any statement of ours needs. */
const QUERY_TIMEOUT = 25_000;

/** Whether a pool is one of node-postgres, so that another can be made like it. */
export function isHostPool(pool: object): pool is HostPool {
    const { options, Client } = pool as { readonly options?: unknown; readonly Client?: unknown };
    return typeof options === 'object' && options !== null && typeof Client === 'function';
}

/** Whether it is a client of node-postgres, which has what a pool has as well; but only a pool counts its clients. */
export function isClient(given: object): boolean {
    return !('totalCount' in given) && ('connectionParameters' in given || 'release' in given);
}

/**
 * A pool of our own like the application's. It keeps the application's sessions as they are, and takes none of the application's
 * connections for listening, which would never come back.
 *
 * The application's pool makes it, through its constructor: what fits is the `pg` that the application has installed, in its version, or a class of
 * the same shape, and not whatever this package would find under that name.
 *
 * @param prepare Is waited for on each new connection, after what the application does there. Older pools leave it out without a word: see {@link assertPrepared}.
 */
export function ownPool(application: HostPool, connections: number, prepare?: (client: PoolClient) => Promise<unknown>): Pool {
    const pool = new (application.constructor as new (options: PoolConfig) => Pool)(ownOptions(application, connections, prepare));
    // An idle connection was lost. The pool makes another when it needs one, and an unheard error would end the process.
    pool.on('error', () => {});
    return pool;
}

/**
 * Asks a session of a pool of our own whether it was prepared.
 *
 * @param of What needs it.
 * @param holds A condition in SQL that holds in sessions that are.
 * @throws ScanwireError `MISCONFIGURED`.
 */
export async function assertPrepared(session: Executor, of: string, holds: string): Promise<void> {
    const { rows } = await session.query<{ prepared: boolean | null }>(`select ${holds} as prepared`);
    if (rows[0]?.prepared !== true) {
        throw new ScanwireError(
            'MISCONFIGURED',
            `The pg package is too old for ${of}: its pools do not know onConnect (or a pooler stands between, and keeps no sessions)`,
        );
    }
}

function ownOptions(application: HostPool, connections: number, prepare?: (client: PoolClient) => Promise<unknown>): PoolConfig {
    // Not a spread: pg hides password and TLS key as properties that are not enumerable.
    const options: PoolConfig = Object.defineProperties({}, Object.getOwnPropertyDescriptors(application.options));
    const { onConnect } = options;
    return Object.assign(options, {
        max: connections,
        min: 0,
        keepAlive: true,
        keepAliveInitialDelayMillis: options.keepAliveInitialDelayMillis || KEEP_ALIVE,
        connectionTimeoutMillis: atMost(CONNECTION_TIMEOUT, options.connectionTimeoutMillis),
        query_timeout: atMost(QUERY_TIMEOUT, options.query_timeout),

        async onConnect(client: PoolClient) {
            await onConnect?.(client);
            await prepare?.(client);
        },
    });
}

/** The application's own limit where it is shorter. It may be a text, as in a connection string, and 0 is none. */
function atMost(limit: number, own: number | string | undefined): number {
    return Math.min(limit, Number(own) || limit);
}
