import type { Executor } from '../../lib/executor.ts';

/** A connection of its own, taken from the pool. */
export interface ClientLike extends Executor {
    /** Gives it back; with an error the pool closes it instead. */
    release(error?: Error | boolean): void;
}

/** The part of a `pg.Pool` that the stores use; the embedded database has the same shape. */
export interface PoolLike extends Executor {
    connect(): Promise<ClientLike>;
}
