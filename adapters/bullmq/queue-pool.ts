import type { EventEmitter } from 'node:events';
import { ScanwireError } from '../../lib/scanwire-error.ts';

/** A `pg.Pool`, the embedded database's included. Only its settings are used. */
export interface PoolLike {
    readonly options: object;
    connect(): Promise<unknown>;
    end(): Promise<void>;
}

interface Result<Row> {
    rows: Row[];
}

interface Client extends Pick<EventEmitter, 'on' | 'removeListener' | 'removeAllListeners'> {
    query<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<Result<Row>>;
    release(destroy?: boolean): void;
}

interface Pool {
    readonly options: { max: number };
    query<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<Result<Row>>;
    connect(): Promise<Client>;
    end(): Promise<void>;
    on(event: 'error', listener: (error: Error) => void): unknown;
}

/** The pool that BullMQ is given. Its statements name no schema, so each session of this pool looks into the queue's own. */
export interface QueuePool extends Pick<Pool, 'query' | 'connect' | 'end'> {
    readonly options: { readonly keepAlive: true };
    on(): QueuePool;
    removeAllListeners(): QueuePool;
    /** Makes room for so many more sessions (fewer when negative): a worker keeps one for listening. */
    reserve(sessions: number): void;
}

const CONNECTION_TIMEOUT = 5_000;
/** For a server that takes statements and never answers; far above what any statement of BullMQ needs. */
const QUERY_TIMEOUT = 30_000;

/**
 * A pool of our own like the host's. It keeps the host's sessions as they are, needs no change of `search_path` around each
 * statement, and takes none of the host's connections for listening, which would never come back.
 */
export function queuePool(host: PoolLike, schema: string, connections: number): QueuePool {
    const pool = new (host.constructor as new (options: object) => Pool)(ownOptions(host, schema, connections));
    // An idle connection was lost. The pool makes another when it needs one, and an unheard error would end the process.
    pool.on('error', () => {});

    const facade: QueuePool = {
        options: { keepAlive: true },
        query: (text, values) => pool.query(text, values),
        connect: () => pool.connect(),
        end: () => pool.end(),
        // BullMQ adds a listener for each queue and never takes it away.
        on: () => facade,
        removeAllListeners: () => facade,

        reserve(sessions) {
            pool.options.max += sessions;
        },
    };
    return facade;
}

/** @throws ScanwireError `MISCONFIGURED` when the sessions of the pool do not look into the schema. */
export async function assertLooksInto(client: Client, schema: string): Promise<void> {
    const { rows } = await client.query('SELECT current_schema() AS schema');
    if (rows[0]?.schema !== schema) {
        throw new ScanwireError('MISCONFIGURED', 'The pg package is too old for the queue: its pools do not know onConnect');
    }
}

interface HostOptions {
    readonly connectionTimeoutMillis?: number;
    readonly query_timeout?: number;
    readonly onConnect?: (client: Client) => unknown;
}

function ownOptions(host: PoolLike, schema: string, connections: number): object {
    // Not a spread: pg hides password and TLS key as properties that are not enumerable.
    const options: HostOptions = Object.defineProperties({}, Object.getOwnPropertyDescriptors(host.options));
    const { onConnect } = options;
    return Object.assign(options, {
        max: connections,
        min: 0,
        keepAlive: true,
        connectionTimeoutMillis: options.connectionTimeoutMillis || CONNECTION_TIMEOUT,
        query_timeout: options.query_timeout || QUERY_TIMEOUT,

        async onConnect(client: Client) {
            await onConnect?.(client);
            await client.query(`SET search_path TO ${schema}`);
        },
    });
}
