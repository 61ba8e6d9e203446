/** What becomes of a statement when nobody waits for it any more: its connection is free again soon, and the server works on it no longer. */
import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { within } from '../../lib/within.ts';
import { isHostPool } from './own-pool.ts';

/** Milliseconds for which it goes on: most have ended by then, so that their connection is used again. */
const GRACE = 50;
/** Milliseconds for which the request that ends it is waited for, and after which it is as good as there. */
const ON_ITS_WAY = 40;
/** Milliseconds after which such a request is given up. */
const PATIENCE = 4_000;

/** Where a statement runs. */
export interface LeftConnection {
    /** A pool of node-postgres, or any other one. */
    readonly pool: object & { readonly embedded?: boolean };
    readonly client: object;
    /** Keeps the connection from being used again. */
    drop(): void;
}

/**
 * What runs on the connection, as long as the signal lets it. Some milliseconds later the server is asked to end it, and the connection is given
 * up: the request may come when its statement has ended, and must find no other one there. Where no server can be asked it is waited for.
 *
 * @throws The signal's reason once the connection was given up, and whatever `work` throws.
 */
export async function untilLeft<T>(work: Promise<T>, signal: AbortSignal, { pool, client, drop }: LeftConnection): Promise<T> {
    const ended = work.then(
        () => true,
        () => true,
    );
    if (await isLeftBefore(ended, signal)) {
        // A process that stood still has its timers before the answers that have come meanwhile.
        const endsSoon = await within(ended, { timeout: GRACE }).catch(() => Promise.race([ended, setImmediate(false)]));
        if (!endsSoon && (await isAsked(pool, client))) {
            drop();
            throw signal.reason;
        }
    }
    return await work;
}

async function isLeftBefore(ended: Promise<unknown>, signal: AbortSignal): Promise<boolean> {
    let leave = (): void => {};
    const left = new Promise<void>((resolve) => {
        leave = resolve;
    });
    signal.addEventListener('abort', leave, { once: true });
    if (!signal.aborted) {
        await Promise.race([ended, left]);
    }
    signal.removeEventListener('abort', leave);
    return signal.aborted;
}

/** Whether the server has been asked to end what the client runs, or soon will be. */
async function isAsked(pool: LeftConnection['pool'], client: object): Promise<boolean> {
    const asking = pool.embedded === true ? null : requestOf(pool, client);
    if (asking === null) {
        return false;
    }

    const asked = asking.then(
        () => true,
        () => false,
    );
    return await within(asked, { timeout: ON_ITS_WAY }).catch(() => true);
}

/** A connection of node-postgres, of which it makes one for each client, connected or not. */
interface DriverConnection extends EventEmitter {
    readonly stream: Socket;
    connect(port: number | string, host?: string): void;
    requestSsl(): void;
    cancel(processID: number, secretKey: unknown): void;
}

interface DriverClient {
    readonly processID?: number | null;
    readonly secretKey?: unknown;
    readonly connection?: DriverConnection;
    readonly host: string;
    readonly port: number;
    readonly ssl?: unknown;
    readonly sslNegotiation?: string;
}

/**
 * The cancel request of the protocol, over a connection of its own that is made as the pool makes those of its clients, TLS included. Resolves
 * when it is over, rejects when nothing was sent. Null where the driver is another one.
 */
function requestOf(pool: object, client: object): Promise<void> | null {
    const { processID, secretKey, connection: used } = client as DriverClient;
    if (!isHostPool(pool) || used === undefined || !processID) {
        return null;
    }

    const { Client, options } = pool as unknown as { readonly Client: new (options: object) => DriverClient; readonly options: object };
    const { connection, host, port, ssl, sslNegotiation } = new Client(options);
    return connection === undefined ? null : sent(connection, { processID, secretKey, host, port, ssl, sslNegotiation });
}

type Request = Omit<DriverClient, 'connection' | 'sslNegotiation'> & {
    readonly processID: number;
    readonly sslNegotiation: string | undefined;
};

async function sent(connection: DriverConnection, { processID, secretKey, host, port, ssl, sslNegotiation }: Request): Promise<void> {
    let isSent = false;
    const send = (): void => {
        isSent = true;
        connection.cancel(processID, secretKey);
    };
    const over = new Promise<void>((resolve, reject) => {
        const end = (error?: Error): void => (isSent ? resolve() : reject(error ?? new Error('The server has closed the connection')));
        // The server closes it, once it has passed the request on.
        connection.on('error', end).once('end', end);
    });
    connection.once('connect', () => {
        if (!ssl) {
            send();
        } else if (sslNegotiation !== 'direct') {
            connection.requestSsl();
        }
    });
    connection.once('sslconnect', send);
    if (host.startsWith('/')) {
        connection.connect(`${host}/.s.PGSQL.${port}`);
    } else {
        connection.connect(port, host);
    }
    await within(over, { timeout: PATIENCE }).finally(() => connection.stream.destroy());
}
