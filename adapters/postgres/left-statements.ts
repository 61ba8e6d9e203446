/** What becomes of a statement when nobody waits for it any more: its connection is free again soon, and the server works on it no longer. */
import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { Executor } from '../../lib/transaction.ts';
import { within } from '../../lib/within.ts';
import { isHostPool } from './own-pool.ts';

/** Milliseconds in which most statements have ended: a signal that is to be made and heeded takes a request as long as the look-up of its row. */
const SOON = 20;
/** Milliseconds for which it goes on: most have ended by then, so that their connection is used again. */
const GRACE = 50;
/** Milliseconds after which the request that ends it is given up. */
const PATIENCE = 4_000;

/** Where a statement runs. */
export interface LeftConnection {
    /** A pool of node-postgres, or any other one. */
    readonly pool: object & { readonly embedded?: boolean };
    readonly client: object;
    /** Keeps the connection from being used again. */
    drop(): void;
}

/** What says that nobody waits any more: a signal, or what gives it to those who wait for longer than most. */
export type Leaver = AbortSignal | (() => AbortSignal | undefined);

/** An {@link Executor} of which a statement ends soon after nobody waits for it any more. */
export interface Reader extends Executor {
    /** @throws The reason of the signal as well, at once while a connection is waited for. */
    query<Row = Record<string, unknown>>(
        text: string,
        values?: unknown[],
        leaver?: Leaver,
    ): Promise<{ rows: Row[]; rowCount: number | null }>;
}

/** How long those wait who leave at either signal. Of one none is made: that takes as long as to send a statement. */
export function leaving<Patience extends { readonly signal?: AbortSignal }>(
    patience: Patience,
    leaver: Leaver | undefined,
): Omit<Patience, 'signal'> & { readonly signal?: Leaver } {
    const { signal } = patience;
    if (signal === undefined || leaver === undefined) {
        return leaver === undefined ? patience : { ...patience, signal: leaver };
    }
    const either = (other: AbortSignal | undefined): AbortSignal => (other === undefined ? signal : AbortSignal.any([signal, other]));
    return { ...patience, signal: typeof leaver === 'function' ? () => either(leaver()) : either(leaver) };
}

/** The signal for as long as the work goes on; none where it ends before one is asked for. */
export async function heeded(leaver: () => AbortSignal | undefined, work: Promise<unknown>): Promise<AbortSignal | undefined> {
    const endsSoon = await new Promise<boolean>((resolve) => {
        const timer = setTimeout(resolve, SOON, false);
        const end = (): void => {
            clearTimeout(timer);
            resolve(true);
        };
        work.then(end, end);
    });
    return endsSoon ? undefined : leaver();
}

/**
 * What runs on the connection, as long as there is no reason to leave. Some milliseconds later the server is asked to end it, and the connection is given
 * up: the request may come when its statement has ended, and must find no other one there. Where no server can be asked it is waited for.
 *
 * @throws The signal's reason once the connection was given up, and whatever `work` throws.
 */
export async function untilLeft<T>(work: Promise<T>, leaver: Leaver, { pool, client, drop }: LeftConnection): Promise<T> {
    const signal = typeof leaver === 'function' ? await heeded(leaver, work) : leaver;
    if (signal === undefined) {
        return await work;
    }

    const ended = work.then(
        () => true,
        () => true,
    );
    if (await isLeftBefore(ended, signal)) {
        // A process that stood still has its timers before the answers that have come meanwhile.
        const endsSoon = await within(ended, { timeout: GRACE }).catch(() => Promise.race([ended, setImmediate(false)]));
        if (!endsSoon && (await isAsked(pool, client, ended))) {
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

/** Whether the server has been asked to end what the client runs. What ends before that is not asked about any more. */
async function isAsked(pool: LeftConnection['pool'], client: object, ended: Promise<unknown>): Promise<boolean> {
    const tooLate = new AbortController();
    const asked = ask(pool, client, tooLate.signal).then(
        () => true,
        () => false,
    );
    // A request that comes when the connection is used again would end somebody else's statement.
    void ended.then(() => tooLate.abort());
    return await asked;
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
 * Sends the cancel request of the protocol, over a connection of its own that is made as the pool makes those of its clients, TLS included, to the
 * server that the client's goes to. Resolves once it is sent.
 *
 * @param signal Nothing is sent any more once it is aborted.
 * @throws When nothing was sent, by a driver that cannot be asked too.
 */
async function ask(pool: LeftConnection['pool'], client: object, signal: AbortSignal): Promise<void> {
    const { processID, secretKey, connection: used } = client as DriverClient;
    if (pool.embedded === true || !isHostPool(pool) || used === undefined || !processID) {
        throw new Error('No server can be asked');
    }

    const { Client, options } = pool as unknown as {
        readonly Client: new (options: object) => DriverClient;
        readonly options: { readonly stream?: unknown };
    };
    const made = new Client(options);
    const { connection } = made;
    if (connection === undefined) {
        throw new Error('No server can be asked');
    }

    // The name may have another address by now. A stream of the application's knows its own way.
    const { remoteAddress } = used.stream;
    if (options.stream === undefined && remoteAddress !== undefined) {
        goTo(remoteAddress, connection.stream);
    }
    await sent(made, connection, signal, () => connection.cancel(processID, secretKey));
}

async function sent(made: DriverClient, connection: DriverConnection, signal: AbortSignal, send: () => void): Promise<void> {
    const lost = new Promise<never>((_, reject) => {
        const end = (error?: Error): void => reject(error ?? new Error('The server has closed the connection'));
        connection.on('error', end).once('end', end);
        signal.addEventListener('abort', () => end(signal.reason), { once: true });
    });
    // The server closes it, once it has passed the request on.
    const timer = setTimeout(() => connection.stream.destroy(), PATIENCE).unref();
    connection.once('end', () => clearTimeout(timer));
    try {
        await Promise.race([open(made, connection), lost]);
        signal.throwIfAborted();
    } catch (error) {
        connection.stream.destroy();
        throw error;
    }
    send();
    // From here on it may arrive, whatever becomes of the statement.
    const flushed = new Promise<void>((resolve) => connection.stream.write('', () => resolve()));
    await Promise.race([flushed, lost.catch(() => {})]);
}

/** Where the stream is connected to, whatever it is told; the certificate is still that of the name. */
function goTo(address: string, stream: Socket): void {
    const connect = stream.connect.bind(stream) as (port: number, host: string) => Socket;
    Object.assign(stream, { connect: (port: number) => connect(port, address) });
}

/** Resolves when a request can be sent, over TLS after the handshake. It keeps no process from its end. */
async function open({ host, port, ssl, sslNegotiation }: DriverClient, connection: DriverConnection): Promise<void> {
    const opened = new Promise<void>((resolve) => {
        connection.once('connect', () => {
            if (!ssl) {
                resolve();
            } else if (sslNegotiation !== 'direct') {
                connection.requestSsl();
            }
        });
        connection.once('sslconnect', () => connection.stream.unref().once('secureConnect', resolve));
    });
    connection.stream.unref();
    if (host.startsWith('/')) {
        connection.connect(`${host}/.s.PGSQL.${port}`);
    } else {
        connection.connect(port, host);
    }
    await opened;
}
