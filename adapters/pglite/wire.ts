/**
 * The little of PostgreSQL's frontend/backend protocol (version 3) that sharing one session takes: finding messages,
 * reading the few that matter, writing the few that have to be made up.
 */

/** A whole message within a buffer: its type byte, and where it starts and ends. */
export interface WireMessage {
    readonly type: number;
    readonly start: number;
    readonly end: number;
}

/** Types of messages a client sends, as the codes of their letters Q, P, S and H. */
export const Frontend: Readonly<Record<'query' | 'parse' | 'sync' | 'flush', number>> = {
    query: 81,
    parse: 80,
    sync: 83,
    flush: 72,
};

/** Types of messages a server sends, as the codes of their letters C, A, S and Z. */
export const Backend: Readonly<Record<'commandComplete' | 'notification' | 'parameterStatus' | 'readyForQuery', number>> = {
    commandComplete: 67,
    notification: 65,
    parameterStatus: 83,
    readyForQuery: 90,
};

const HEADER = 5;
const PROTOCOL_3 = 196608;

/** The whole messages of a buffer in order; what is left over at the end is not a whole message yet. */
export function* messages(bytes: Buffer): Generator<WireMessage, void, undefined> {
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
export function strings(bytes: Buffer, { start, end }: WireMessage, skip = 0): string[] {
    return bytes
        .toString('utf8', start + HEADER + skip, end)
        .split('\0')
        .slice(0, -1);
}

/** A message of this type with these bytes as its body. */
export function message(type: string, body: string): Buffer {
    const length = Buffer.byteLength(body);
    const bytes = Buffer.alloc(HEADER + length);
    bytes.write(type, 0, 'latin1');
    bytes.writeUInt32BE(4 + length, 1);
    bytes.write(body, HEADER);
    return bytes;
}

/** A simple query. */
export function query(sql: string): Buffer {
    return message('Q', `${sql}\0`);
}

/** The bytes without these spans, which are in order. */
export function without(bytes: Buffer, spans: readonly { readonly start: number; readonly end: number }[]): Buffer {
    const starts = [0, ...spans.map(({ end }) => end)];
    return Buffer.concat(starts.map((start, index) => bytes.subarray(start, spans[index]?.start ?? bytes.length)));
}

/** The packet that opens a connection. */
export function startup(parameters: Readonly<Record<string, string>>): Buffer {
    const body = `${Object.entries(parameters).flat().join('\0')}\0\0`;
    const bytes = Buffer.alloc(8 + Buffer.byteLength(body));
    bytes.writeUInt32BE(bytes.length, 0);
    bytes.writeUInt32BE(PROTOCOL_3, 4);
    bytes.write(body, 8);
    return bytes;
}

/** The parameters of the packet that opens a connection. */
export function startupParameters(bytes: Buffer): ReadonlyMap<string, string> {
    const parts = bytes.toString('utf8', 8).split('\0');
    return new Map(parts.flatMap((name, index) => (index % 2 === 0 && name !== '' ? [[name, parts[index + 1] ?? '']] : [])));
}
