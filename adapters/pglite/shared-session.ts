import { Backend, Frontend, messages, query, startup, startupParameters, strings, without } from './wire.ts';

/** State of a connection's transaction, as in ReadyForQuery: none, open, failed. */
export type TransactionState = 'I' | 'T' | 'E';

export interface SharedSessionOptions {
    /** Runs messages on the one real session and resolves with all that it answered. */
    execute(bytes: Buffer): Promise<Buffer>;
    /**
     * Hands bytes to a connection: one answer, with the state of its transaction, for everything received from it, and
     * notifications in between, with null.
     */
    send(connection: number, bytes: Buffer, state: TransactionState | null): void;
}

/** One database session that looks like many connections. */
export interface SharedSession {
    /** Takes what a connection sent: its opening packet first, then messages up to a Query, Sync or Flush. */
    receive(connection: number, bytes: Buffer): void;
    /** The connection is gone: what it waited for is dropped, its transaction rolled back. */
    leave(connection: number): void;
    /** Resolves when everything received has been answered; an open transaction is rolled back. */
    drain(): Promise<void>;
}

interface Connection {
    readonly id: number;
    searchPath: string;
    readonly channels: Set<string>;
}

interface Work {
    readonly id: number;
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
    const connections = new Map<number, Connection>();
    const waiting: Work[] = [];
    let owner: Connection | null = null;
    let turn: Promise<void> | null = null;

    // Opening the session as a server would makes it report every later change of its search_path.
    const greeting = await execute(startup({ user: 'postgres', database: 'postgres' }));
    const defaultPath = read(greeting).searchPath ?? 'public';
    let searchPath = defaultPath;

    async function takeTurns(): Promise<void> {
        for (let work = next(); work !== undefined; work = next()) {
            const connection = connections.get(work.id);
            if (connection !== undefined) {
                await run(connection, work.bytes);
            }
        }
    }

    function next(): Work | undefined {
        const index = owner === null ? 0 : waiting.findIndex((work) => work.id === owner?.id);
        return index < 0 ? undefined : waiting.splice(index, 1)[0];
    }

    /** Takes no turn: whoever connects is not held up by a transaction. */
    function open({ id, bytes }: Work): void {
        const path = /-c\s*search_path=(\S+)/.exec(startupParameters(bytes).get('options') ?? '')?.[1];
        connections.set(id, { id, searchPath: path ?? defaultPath, channels: new Set() });
        send(id, Buffer.from(greeting), 'I');
    }

    async function run(connection: Connection, bytes: Buffer): Promise<void> {
        const sql = statementIn(bytes);
        if (owner === null && connection.searchPath !== searchPath) {
            await statement(`select set_config('search_path', '${connection.searchPath.replaceAll("'", "''")}', false)`);
        }

        const answer = await execute(copiesFromClient(sql) ? REFUSED_COPY : bytes);
        const seen = read(answer);
        if (seen.state === null && !waitsForMore(bytes)) {
            throw new Error('The database session does not answer');
        }

        searchPath = seen.searchPath ?? searchPath;
        connection.searchPath = searchPath;
        owner = seen.state === 'I' ? null : connection;
        await follow(connection, sql, seen.tags);
        deliver(connection, answer, seen);
    }

    /** A statement of our own, on behalf of nobody. */
    async function statement(sql: string): Promise<void> {
        searchPath = read(await execute(query(sql))).searchPath ?? searchPath;
    }

    /** Keeps account of who listens to what. The session has one list: what one connection drops, another may still want. */
    async function follow(connection: Connection, sql: string, tags: ReadonlySet<string>): Promise<void> {
        if (tags.has('LISTEN')) {
            connection.channels.add(channelIn(sql) ?? EVERY_CHANNEL);
        }

        if (tags.has('UNLISTEN') || tags.has('DISCARD ALL')) {
            const channel = tags.has('UNLISTEN') ? channelIn(sql) : null;
            if (channel === null) {
                connection.channels.clear();
            } else {
                connection.channels.delete(channel);
            }

            await listenAgain();
        }
    }

    async function listenAgain(): Promise<void> {
        const wanted = new Set([...connections.values()].flatMap(({ channels }) => [...channels]));
        for (const channel of owner === null ? wanted : []) {
            await statement(`listen "${channel.replaceAll('"', '""')}"`);
        }
    }

    function deliver(connection: Connection, answer: Buffer, { state, notifications }: Answer): void {
        if (notifications.length === 0) {
            send(connection.id, answer, state ?? 'T');
            return;
        }

        for (const { channel, start, end } of notifications) {
            for (const { id, channels } of connections.values()) {
                if (id !== connection.id && (channels.has(channel) || channels.has(EVERY_CHANNEL))) {
                    send(id, Buffer.from(answer.subarray(start, end)), null);
                }
            }
        }

        const foreign = notifications.filter(({ channel }) => !connection.channels.has(channel) && !connection.channels.has(EVERY_CHANNEL));
        send(connection.id, without(answer, foreign), state ?? 'T');
    }

    function proceed(): Promise<void> {
        turn ??= takeTurns().finally(() => {
            turn = null;
        });
        return turn;
    }

    return {
        receive(id, bytes) {
            if (!connections.has(id)) {
                open({ id, bytes });
                return;
            }

            waiting.push({ id, bytes });
            void proceed();
        },

        leave(connection) {
            const rest = waiting.filter((work) => work.id !== connection);
            waiting.splice(0, waiting.length, ...rest);
            void end(connection);
        },

        async drain() {
            await proceed();
            if (owner !== null) {
                await end(owner.id);
            }
        },
    };

    async function end(id: number): Promise<void> {
        await turn;
        connections.delete(id);
        if (owner?.id === id) {
            await statement('rollback');
            owner = null;
        }

        await proceed();
    }
}

const EVERY_CHANNEL = '*';

/** PGlite reads the data of a COPY from where there is none, and ends the process. */
const REFUSED_COPY = query(
    "do $$ begin raise exception 'COPY FROM STDIN is not supported by the embedded database' using errcode = '0A000'; end $$",
);

function copiesFromClient(sql: string): boolean {
    return /^\s*copy\s/i.test(sql) && /\sfrom\s+stdin\b/i.test(sql);
}

/** The first statement of what a client sent, `''` where it only binds or executes one. */
function statementIn(bytes: Buffer): string {
    const first = messages(bytes).next().value;
    if (first?.type === Frontend.query) {
        return strings(bytes, first)[0] ?? '';
    }

    return first?.type === Frontend.parse ? (strings(bytes, first)[1] ?? '') : '';
}

/** Whether the client has not ended its batch: the answer is due now, but the session is not free yet. */
function waitsForMore(bytes: Buffer): boolean {
    return [...messages(bytes)].at(-1)?.type === Frontend.flush;
}

/** The channel of a LISTEN or UNLISTEN, as PostgreSQL folds identifiers; null where the statement does not begin with one. */
function channelIn(sql: string): string | null {
    const [, quoted, plain] = /^\s*(?:un)?listen\s+(?:"((?:[^"]|"")+)"|([^\s;"*]+))/i.exec(sql) ?? [];
    return quoted?.replaceAll('""', '"') ?? plain?.toLowerCase() ?? null;
}

interface Answer {
    readonly searchPath: string | null;
    /** Null when the session is not ready for another query yet. */
    readonly state: TransactionState | null;
    readonly tags: ReadonlySet<string>;
    readonly notifications: readonly Notification[];
}

interface Notification {
    readonly channel: string;
    readonly start: number;
    readonly end: number;
}

function read(answer: Buffer): Answer {
    let searchPath: string | null = null;
    let state: TransactionState | null = null;
    const tags = new Set<string>();
    const notifications: Notification[] = [];

    for (const found of messages(answer)) {
        if (found.type === Backend.readyForQuery) {
            state = answer.toString('latin1', found.end - 1, found.end) as TransactionState;
        } else if (found.type === Backend.commandComplete) {
            tags.add(strings(answer, found)[0] ?? '');
        } else if (found.type === Backend.parameterStatus) {
            const [name, value] = strings(answer, found);
            searchPath = name === 'search_path' ? (value ?? null) : searchPath;
        } else if (found.type === Backend.notification) {
            notifications.push({ channel: strings(answer, found, PROCESS_ID_BYTES)[0] ?? '', start: found.start, end: found.end });
        }
    }

    return { searchPath, state, tags, notifications };
}

const PROCESS_ID_BYTES = 4;
