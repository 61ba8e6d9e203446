import { ScanwireError } from '../../lib/scanwire-error.ts';
import type { BullmqPool, BullmqPoolClient } from './bullmq-pool.ts';

/**
 * The pool that BullMQ is given. Its statements name no schema, so each of its sessions looks into `schema` first, while
 * the host's sessions stay as they are.
 */
export interface QueuePool extends BullmqPool {
    readonly options: { readonly keepAlive: true };
    on(event: string, listener: (...args: never[]) => void): this;
    removeAllListeners(): this;
    /** Makes room for so many more sessions (fewer when negative) that a worker keeps for listening. */
    reserve(sessions: number): void;
    /** Called after the migration, on its session. */
    settle(client: BullmqPoolClient): Promise<void>;
}

/** A `pg.Pool`, as far as making another one like it goes. */
interface NodePostgresPool extends BullmqPool {
    readonly Client: unknown;
    readonly options: Record<string, unknown> & { max: number };
    on(event: string, listener: () => void): unknown;
}

const CONNECTION_TIMEOUT = 5_000;
/** For a server that takes statements and never answers; far above what any statement of BullMQ needs. */
const QUERY_TIMEOUT = 30_000;

export function queuePool(pool: BullmqPool, schema: string, connections: number): QueuePool {
    return isNodePostgresPool(pool) ? ownSessions(pool, schema, connections) : sharedSession(pool, schema);
}

/**
 * Sessions of our own. They keep the workers' listening sessions, which are never given back, out of the host's pool, and
 * need no change of `search_path` on each statement.
 */
function ownSessions(host: NodePostgresPool, schema: string, connections: number): QueuePool {
    const pool = new (host.constructor as new (options: object) => NodePostgresPool)(ownOptions(host, schema, connections));
    pool.on('error', () => {
        // An idle session was lost; the pool opens another when it needs one.
    });

    return {
        ...facade(pool),
        end: () => pool.end(),

        reserve(sessions) {
            pool.options.max += sessions;
        },

        async settle(client) {
            const { rows } = await client.query('SELECT current_schema() AS schema');
            if (rows[0]?.schema !== schema) {
                throw new ScanwireError('MISCONFIGURED', 'The pg package is too old for the queue: its pools do not know onConnect');
            }
        },
    };
}

function ownOptions(host: NodePostgresPool, schema: string, connections: number): object {
    // Not a spread: pg keeps password and TLS key out of sight as properties that are not enumerable.
    const options = Object.defineProperties({}, Object.getOwnPropertyDescriptors(host.options)) as Record<string, unknown>;
    const hosts = options.onConnect as ((client: BullmqPoolClient) => unknown) | undefined;
    return Object.assign(options, {
        max: connections,
        min: 0,
        keepAlive: true,
        connectionTimeoutMillis: options.connectionTimeoutMillis || CONNECTION_TIMEOUT,
        query_timeout: options.query_timeout || QUERY_TIMEOUT,
        async onConnect(client: BullmqPoolClient) {
            await hosts?.(client);
            await client.query(`SET search_path TO ${schema}`);
        },
    });
}

/** Everything goes through one session, ours as well as the host's. Our other statements name their schema. */
function sharedSession(pool: BullmqPool, schema: string): QueuePool {
    return {
        ...facade(pool),
        end: async () => {},
        reserve: () => {},

        async settle(client) {
            await client.query(`SET search_path TO ${schema}, public`);
        },
    };
}

/** BullMQ adds listeners for errors of the pool with each queue and never takes them away; the one above does for all. */
function facade(pool: BullmqPool): Pick<QueuePool, 'query' | 'connect' | 'options' | 'on' | 'removeAllListeners'> {
    return {
        query: (text, values) => pool.query(text, values),
        connect: () => pool.connect(),
        options: { keepAlive: true },
        on() {
            return this as QueuePool;
        },
        removeAllListeners() {
            return this as QueuePool;
        },
    };
}

function isNodePostgresPool(pool: BullmqPool): pool is NodePostgresPool {
    return 'Client' in pool && 'options' in pool && typeof pool.options === 'object';
}
