import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import type { Client, Pool, PoolClient } from 'pg';
import { ScanwireError } from '../../lib/errors.ts';
import { optionalPackage } from '../../lib/optional-packages.ts';
import type { Executor } from '../../lib/transaction.ts';
import type { DatabaseThread } from './database-thread.ts';

/** A notification as node-postgres emits it. */
export interface EmbeddedNotification {
    readonly channel: string;
    readonly payload?: string | undefined;
    readonly processId: number;
}

/** A checked-out client of node-postgres. */
export interface EmbeddedClient extends Executor {
    /** Gives the client back; a transaction that is still open is rolled back. With true or an error, the client is not used again. */
    release(destroy?: Error | boolean): void;
    on(event: 'notification', listener: (notification: EmbeddedNotification) => void): this;
    on(event: 'error', listener: (error: Error) => void): this;
    on(event: 'end', listener: () => void): this;
    removeListener(event: 'notification', listener: (notification: EmbeddedNotification) => void): this;
    removeListener(event: 'error', listener: (error: Error) => void): this;
    removeListener(event: 'end', listener: () => void): this;
    removeAllListeners(event?: string): this;
}

/**
 * A `pg.Pool` whose clients share the one session of the embedded database. Results, types and errors are those of
 * node-postgres, because it is node-postgres that reads them.
 */
export interface EmbeddedDatabase extends Executor {
    readonly embedded: true;
    /** The pool's options. Another `pg.Pool` made from them leads to the same database. */
    readonly options: Readonly<Record<string, unknown>>;
    connect(): Promise<EmbeddedClient>;
    /** Resolves once nobody has a transaction or a statement under way, nor goes on with another one at once; after so many milliseconds at the latest. */
    othersFirst(patience: number): Promise<void>;
    /** Ends pending transactions and statements, closes the database and gives its folder back. */
    end(): Promise<void>;
    on(event: 'error', listener: (error: Error) => void): this;
    on(event: 'connect', listener: (client: EmbeddedClient) => void): this;
    removeListener(event: string, listener: (...values: never[]) => void): this;
    removeAllListeners(event?: string): this;
}

/** Connections cost nothing on the other side; more than this many at once wait for one another. */
const CONNECTIONS = 100;
/** How long `end` waits for transactions that others have open, in milliseconds. */
const PATIENCE = 5_000;

/** A node-postgres pool over the thread. Ending it closes the thread. */
export async function embeddedPool(thread: DatabaseThread): Promise<EmbeddedDatabase> {
    const { Pool } = (await optionalPackage('pg', 'The embedded database', () => import('pg'))).default;
    const pool = new Pool({
        stream: thread.connect,
        keepAlive: true,
        max: CONNECTIONS,
        idleTimeoutMillis: 0,
        // Said explicitly, since node-postgres would look for them in the environment.
        ssl: false,
        host: 'embedded',
        user: 'postgres',
        database: 'postgres',
    });

    // What one has prepared, the session that they share has for all. node-postgres keeps it here; its types do not say so.
    const shared = { parsedStatements: {}, submittedNamedStatements: {} };
    pool.on('connect', (client) => Object.assign((client as unknown as { connection: object }).connection, shared));

    // The pool emits what befalls an idle client, and an unheard error would end the process.
    pool.on('error', () => {});
    pool.on('release', (_error, client) => {
        if (thread.busy(socketOf(client))) {
            client.query('rollback').catch(() => {});
        }
    });

    return withOwnEnd(pool, thread) as unknown as EmbeddedDatabase;
}

/** Unlike the pool's own, this `end` does not wait for clients that do nothing but listen, and it rejects later connections with the reason. */
function withOwnEnd(pool: Pool, thread: DatabaseThread): Pool {
    const connectUnlessClosed = pool.connect.bind(pool) as Connect;
    const endPool = pool.end.bind(pool);
    const clients = new Set<PoolClient>();
    let ended: Promise<void> | null = null;
    pool.on('connect', (client) => clients.add(client));
    pool.on('remove', (client) => clients.delete(client));

    async function close(): Promise<void> {
        await Promise.race([thread.idle(), sleep(PATIENCE, undefined, { ref: false })]);
        void endPool().catch(() => {});
        // Those that are still checked out: ended by us, they do not take it for the loss of their connection. Their type hides it.
        await Promise.all([...clients].map((client) => (client as unknown as Client).end()));
        await thread.close();
    }

    return Object.assign(pool, {
        embedded: true,
        othersFirst: (patience: number) => othersFirst(thread, patience),
        connect(callback?: ConnectCallback) {
            if (ended === null) {
                return connectUnlessClosed(callback);
            }

            const error = new ScanwireError('UNAVAILABLE', 'The embedded database is closed');
            return callback === undefined ? Promise.reject(error) : callback(error, undefined, () => {});
        },
        end(callback?: () => void) {
            ended ??= close();
            return callback === undefined ? ended : void ended.then(callback);
        },
    });
}

async function othersFirst(thread: DatabaseThread, patience: number): Promise<void> {
    const until = performance.now() + patience;
    for (let left = patience; left > 0; left = thread.busy() ? until - performance.now() : 0) {
        await Promise.race([thread.idle(), sleep(left, undefined, { ref: false })]);
        // Whoever has several statements asks for the next one as soon as it has been answered.
        await turn();
    }
}

type ConnectCallback = (error: Error | undefined, client: PoolClient | undefined, done: () => void) => void;
type Connect = (callback?: ConnectCallback) => unknown;

/** node-postgres keeps its stream here; its types do not say so. */
function socketOf(client: unknown): object {
    return (client as { connection: { stream: object } }).connection.stream;
}
