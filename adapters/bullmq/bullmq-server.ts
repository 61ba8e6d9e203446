import type { BackendFactory, ConnectionOptions } from 'bullmq';

/** What BullMQ's constructors are given. */
export interface BullmqConnection {
    readonly connection: ConnectionOptions;
    /** Redis only: what the names of all keys begin with. */
    readonly prefix?: string;
}

export interface BullmqWorkerConnection extends BullmqConnection {
    /** Called before the worker closes: from now on a server that is away is not waited for. */
    stopWaiting(): void;
    /** Called after the worker has closed. */
    release(): void;
}

/** The server that BullMQ keeps its jobs on. */
export interface BullmqServer {
    /** For messages, for example `Redis`. */
    readonly name: string;
    readonly backend: BackendFactory;
    /** @throws ScanwireError `MISCONFIGURED`, `UNAVAILABLE`. */
    ready(): Promise<void>;
    /** A connection that fails at once while the server is away. @throws ScanwireError `UNAVAILABLE`. */
    producer(): Promise<BullmqConnection>;
    /** A connection for one worker, which waits for the server for as long as it takes. */
    worker(): Promise<BullmqWorkerConnection>;
    close(): Promise<void>;
}
