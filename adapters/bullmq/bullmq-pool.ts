import type { EventEmitter } from 'node:events';

interface Result {
    // biome-ignore lint/suspicious/noExplicitAny: rows have the shape that the statement gives them
    rows: any[];
    rowCount?: number | null;
}

/** A session checked out of a {@link BullmqPool}. Emits `notification` for what it listens to. */
export interface BullmqPoolClient extends Pick<EventEmitter, 'on' | 'removeListener' | 'removeAllListeners'> {
    query(text: string, values?: unknown[]): Promise<Result>;
    release(destroy?: boolean): void;
}

/** The part of a `pg.Pool` that the queue needs; the embedded database fits as well. */
export interface BullmqPool {
    query(text: string, values?: unknown[]): Promise<Result>;
    connect(): Promise<BullmqPoolClient>;
    end(): Promise<void>;
}
