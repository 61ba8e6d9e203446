/**
 * The little of PostgreSQL's frontend/backend protocol (version 3) that sharing one session takes: finding messages, reading what
 * matters in requests and replies, writing the few messages that have to be made up.
 */

/** A whole message within a buffer: its type byte, and where it starts and ends. */
interface Message {
    readonly type: number;
    readonly start: number;
    readonly end: number;
}

/** Types of messages a client sends, as the codes of their letters Q, P, S and H. */
const Frontend = { query: 81, parse: 80, sync: 83, flush: 72 } as const;

/** Types of messages a server sends, as the codes of their letters C, A, S and Z. */
const Backend = { commandComplete: 67, notification: 65, parameterStatus: 83, readyForQuery: 90 } as const;

const HEADER = 5;

/** The whole messages of a buffer in order; what is left over at the end is not a whole message yet. */
function* messages(bytes: Buffer): Generator<Message, void, undefined> {
    for (let start = 0; start + HEADER <= bytes.length; ) {
        const end = start + 1 + bytes.readUInt32BE(start + 1);
        if (end > bytes.length) {
            return;
        }

        yield { type: bytes[start] ?? 0, start, end };
        start = end;
    }
}

/** The zero-terminated strings of a message's body. */
function strings(bytes: Buffer, { start, end }: Message, skip = 0): string[] {
    return bytes
        .toString('utf8', start + HEADER + skip, end)
        .split('\0')
        .slice(0, -1);
}

/** Length of the part of what a client sent that ends with a message which asks for an answer; 0 while there is none. */
export function requestLength(bytes: Buffer): number {
    let length = 0;
    for (const { type, end } of messages(bytes)) {
        length = type === Frontend.query || type === Frontend.sync || type === Frontend.flush ? end : length;
    }

    return length;
}

/** The first statement of what a client sent, `''` where it only binds or executes one. */
export function statementIn(request: Buffer): string {
    const first = messages(request).next().value;
    if (first?.type === Frontend.query) {
        return strings(request, first)[0] ?? '';
    }

    return first?.type === Frontend.parse ? (strings(request, first)[1] ?? '') : '';
}

/** Whether the client has not ended its batch: the answer is due now, but the session is not free yet. */
export function waitsForMore(request: Buffer): boolean {
    return [...messages(request)].at(-1)?.type === Frontend.flush;
}

/** State of a transaction, as in ReadyForQuery: none, open, failed. */
export type TransactionState = 'I' | 'T' | 'E';

/** Where a notification stands in a reply, and its channel. */
export interface Notification {
    readonly channel: string;
    readonly start: number;
    readonly end: number;
}

/** What the session said in answer to a request. */
export interface Reply {
    readonly bytes: Buffer;
    /** The session's `search_path`, if it has changed. */
    readonly searchPath: string | null;
    /** Null when the session is not ready for another query yet. */
    readonly state: TransactionState | null;
    /** Tags of the commands that were completed, for example `LISTEN`. */
    readonly tags: ReadonlySet<string>;
    readonly notifications: readonly Notification[];
}

/** A notification begins with the id of the process that sent it. */
const PROCESS_ID_BYTES = 4;

/** Reads all that a session answered. */
export function readReply(bytes: Buffer): Reply {
    let searchPath: string | null = null;
    let state: TransactionState | null = null;
    const tags = new Set<string>();
    const notifications: Notification[] = [];

    for (const message of messages(bytes)) {
        if (message.type === Backend.readyForQuery) {
            state = bytes.toString('latin1', message.end - 1, message.end) as TransactionState;
        } else if (message.type === Backend.commandComplete) {
            tags.add(strings(bytes, message)[0] ?? '');
        } else if (message.type === Backend.parameterStatus) {
            const [name, value] = strings(bytes, message);
            searchPath = name === 'search_path' ? (value ?? null) : searchPath;
        } else if (message.type === Backend.notification) {
            const { start, end } = message;
            notifications.push({ channel: strings(bytes, message, PROCESS_ID_BYTES)[0] ?? '', start, end });
        }
    }

    return { bytes, searchPath, state, tags, notifications };
}

/** The bytes without these spans, which are in order. */
export function without(bytes: Buffer, spans: readonly { readonly start: number; readonly end: number }[]): Buffer {
    const starts = [0, ...spans.map(({ end }) => end)];
    return Buffer.concat(starts.map((start, index) => bytes.subarray(start, spans[index]?.start ?? bytes.length)));
}

/** A simple query. */
export function query(sql: string): Buffer {
    const body = `${sql}\0`;
    const length = Buffer.byteLength(body);
    const bytes = Buffer.alloc(HEADER + length);
    bytes[0] = Frontend.query;
    bytes.writeUInt32BE(4 + length, 1);
    bytes.write(body, HEADER);
    return bytes;
}

const PROTOCOL_3 = 196608;

/** The packet that opens a connection. */
export function startup(parameters: Readonly<Record<string, string>>): Buffer {
    const body = `${Object.entries(parameters).flat().join('\0')}\0\0`;
    const bytes = Buffer.alloc(8 + Buffer.byteLength(body));
    bytes.writeUInt32BE(bytes.length, 0);
    bytes.writeUInt32BE(PROTOCOL_3, 4);
    bytes.write(body, 8);
    return bytes;
}
