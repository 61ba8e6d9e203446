/*
 * Done by hand where `@electric-sql/pglite-socket` would nearly do: BullMQ needs a LISTEN and a search_path for each connection, which
 * that has not, and here nothing listens on a socket.
 */
import { GIVES_WAY } from '../../lib/giving-way.ts';
import { query, type Reply, readReply, requestLength, startup, statementIn, type TransactionState, waitsForMore, without } from './wire.ts';

/** That a connection got an answer. */
export interface Answered {
    /** How many of the bytes that were received from the connection are answered with it. */
    readonly bytes: number;
    readonly state: TransactionState;
}

/** The real session, and the way to the connections that share it. */
export interface SharedSessionOptions {
    /** Runs messages on the one real session and resolves with all that it answered. `givesWay`: it may be cut off as soon as others wait. */
    execute(bytes: Buffer, options?: { readonly givesWay: boolean }): Promise<Buffer>;
    /** Hands bytes to a connection: an answer, or, with null, a notification in between. */
    send(connection: number, bytes: Buffer, answered: Answered | null): void;
}

/** One database session that looks like many connections. */
export interface SharedSession {
    /** Takes what a connection sent, its opening packet first. */
    receive(connection: number, bytes: Buffer): void;
    /** The connection is gone: what it waited for is dropped, its transaction rolled back. */
    leave(connection: number): void;
    /** Whether requests wait for the one that runs. */
    waits(): boolean;
    /** Resolves when everything received has been answered; an open transaction is rolled back. */
    drain(): Promise<void>;
}

interface Connection {
    readonly id: number;
    searchPath: string;
    /** The channels it listens to. */
    readonly channels: Set<string>;
    /** The beginning of a request whose end has not been received. */
    received: Buffer;
}

/** Messages up to one that asks for an answer. */
interface Request {
    readonly connection: Connection;
    readonly bytes: Buffer;
}

/**
 * Lets many connections take turns on one session, each as if it had the session to itself in what matters: a connection
 * with a transaction (open or failed) keeps the session until it ends, each has its own `search_path`, and notifications go
 * to those who listen. Other session settings, session-level advisory locks and temporary tables are common to all.
 *
 * @throws when the session does not answer as PostgreSQL does: it cannot be used any more.
 */
export async function sharedSession({ execute, send }: SharedSessionOptions): Promise<SharedSession> {
    const session = await openSession(execute);
    const connections = new Map<number, Connection>();
    const turns = turnsOf(serve, () => session.run(query('rollback')));

    /** Takes no turn: whoever connects is not held up by a transaction. */
    function open(id: number, { length }: Buffer): void {
        connections.set(id, { id, searchPath: session.defaultPath, channels: new Set(), received: Buffer.alloc(0) });
        send(id, Buffer.from(session.greeting), { bytes: length, state: 'I' });
    }

    async function serve({ connection, bytes }: Request): Promise<TransactionState> {
        const sql = statementIn(bytes);
        await session.lookInto(connection.searchPath);
        const reply = await session.run(copiesFromClient(sql) ? REFUSED_COPY : bytes, { givesWay: sql.startsWith(GIVES_WAY) });
        /* c8 ignore next 3 -- only a fault of PGlite, at which the thread ends rather than answer one connection what another asked */
        if (reply.state === null && !waitsForMore(bytes)) {
            throw new Error('The database session does not answer');
        }

        const state = reply.state ?? 'T';
        connection.searchPath = session.searchPath();
        if (hasDropped(connection, sql, reply) && state === 'I') {
            await session.listen([...connections.values()].flatMap(({ channels }) => [...channels]));
        }

        notifyOthers(connection, reply);
        send(connection.id, ownAnswer(connection, reply), { bytes: bytes.length, state });
        return state;
    }

    function notifyOthers(connection: Connection, { bytes, notifications }: Reply): void {
        for (const { channel, start, end } of notifications) {
            for (const other of connections.values()) {
                if (other !== connection && listensTo(other, channel)) {
                    send(other.id, Buffer.from(bytes.subarray(start, end)), null);
                }
            }
        }
    }

    return {
        receive(id, bytes) {
            const connection = connections.get(id);
            if (connection === undefined) {
                open(id, bytes);
                return;
            }

            const received = connection.received.length === 0 ? bytes : Buffer.concat([connection.received, bytes]);
            const length = requestLength(received);
            connection.received = received.subarray(length);
            if (length > 0) {
                turns.add({ connection, bytes: received.subarray(0, length) });
            }
        },

        leave(id) {
            const connection = connections.get(id);
            connections.delete(id);
            if (connection !== undefined) {
                void turns.leave(connection);
            }
        },

        waits: () => turns.waits(),
        drain: () => turns.drain(),
    };
}

/** The one real session. */
async function openSession(execute: SharedSessionOptions['execute']) {
    // Opening the session as a server would makes it report every later change of its search_path.
    const greeting = await execute(startup({ user: 'postgres', database: 'postgres' }));
    const defaultPath = readReply(greeting).searchPath ?? 'public';
    let searchPath = defaultPath;

    async function run(bytes: Buffer, options?: { readonly givesWay: boolean }): Promise<Reply> {
        const reply = readReply(await execute(bytes, options));
        searchPath = reply.searchPath ?? searchPath;
        return reply;
    }

    return {
        /** What it says to whoever connects. */
        greeting,
        defaultPath,
        searchPath: () => searchPath,
        run,

        /** Sets the `search_path`, unless that is what it is. */
        async lookInto(path: string): Promise<void> {
            if (path !== searchPath) {
                await run(query(`select set_config('search_path', '${path.replaceAll("'", "''")}', false)`));
            }
        },

        async listen(channels: readonly string[]): Promise<void> {
            for (const channel of new Set(channels)) {
                await run(query(`listen "${channel.replaceAll('"', '""')}"`));
            }
        },
    };
}

/** One request after another; but a connection in a transaction keeps the session until that has ended. */
function turnsOf(serve: (request: Request) => Promise<TransactionState>, rollback: () => Promise<unknown>) {
    const waiting: Request[] = [];
    let owner: Connection | null = null;
    let serving: Promise<void> | null = null;

    function next(): Request | undefined {
        const index = owner === null ? 0 : waiting.findIndex(({ connection }) => connection === owner);
        return index < 0 ? undefined : waiting.splice(index, 1)[0];
    }

    async function serveAll(): Promise<void> {
        for (let request = next(); request !== undefined; request = next()) {
            owner = (await serve(request)) === 'I' ? null : request.connection;
        }
    }

    function proceed(): Promise<void> {
        serving ??= serveAll().finally(() => {
            serving = null;
        });
        return serving;
    }

    /** Drops the requests of a connection and ends its transaction. */
    async function leave(connection: Connection): Promise<void> {
        waiting.splice(0, waiting.length, ...waiting.filter((request) => request.connection !== connection));
        await serving;
        if (owner === connection) {
            await rollback();
            owner = null;
        }

        await proceed();
    }

    return {
        add(request: Request): void {
            waiting.push(request);
            void proceed();
        },

        leave,
        waits: () => waiting.length > 0,

        async drain(): Promise<void> {
            await proceed();
            if (owner !== null) {
                await leave(owner);
            }
        },
    };
}

/** PGlite reads the data of a COPY from where there is none, and ends the process. */
const REFUSED_COPY = query(
    "do $$ begin raise exception 'COPY FROM STDIN is not supported by the embedded database' using errcode = '0A000'; end $$",
);

function copiesFromClient(sql: string): boolean {
    return /^\s*copy\s/i.test(sql) && /\sfrom\s+stdin\b/i.test(sql);
}

const EVERY_CHANNEL = '*';

/**
 * Keeps account of what the connection listens to.
 *
 * @returns Whether it has dropped something. The session has one list of channels: what one connection drops, another may still want.
 */
function hasDropped({ channels }: Connection, sql: string, { tags }: Reply): boolean {
    if (tags.has('LISTEN')) {
        channels.add(channelIn(sql) ?? EVERY_CHANNEL);
    }

    const channel = tags.has('UNLISTEN') ? channelIn(sql) : null;
    if (channel !== null) {
        channels.delete(channel);
    } else if (tags.has('UNLISTEN') || tags.has('DISCARD ALL')) {
        channels.clear();
    }

    return tags.has('UNLISTEN') || tags.has('DISCARD ALL');
}

/** The channel of a LISTEN or UNLISTEN, as PostgreSQL folds identifiers; null where the statement does not begin with one. */
function channelIn(sql: string): string | null {
    const [, quoted, plain] = /^\s*(?:un)?listen\s+(?:"((?:[^"]|"")+)"|([^\s;"*]+))/i.exec(sql) ?? [];
    return quoted?.replaceAll('""', '"') ?? plain?.toLowerCase() ?? null;
}

function listensTo({ channels }: Connection, channel: string): boolean {
    return channels.has(channel) || channels.has(EVERY_CHANNEL);
}

/** The reply without the notifications that the connection does not listen to. */
function ownAnswer(connection: Connection, { bytes, notifications }: Reply): Buffer {
    const foreign = notifications.filter(({ channel }) => !listensTo(connection, channel));
    return foreign.length === 0 ? bytes : without(bytes, foreign);
}
