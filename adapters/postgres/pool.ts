import type { Executor } from '../../lib/executor.ts';

/** A client checked out of a pool, for several statements in one session. A `pg.PoolClient` fits. */
export interface ClientLike extends Executor {
    /** Gives the client back; with true or an error, its connection is closed and not used again. */
    release(destroy?: Error | boolean): void;
    on(event: 'error', listener: (error: Error) => void): unknown;
    removeListener(event: 'error', listener: (error: Error) => void): unknown;
}

/** What the stores need of a pool. A `pg.Pool` fits, and so does the embedded database. Whoever made the pool ends it. */
export interface PoolLike extends Executor {
    connect(): Promise<ClientLike>;
}
