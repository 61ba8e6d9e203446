import type { Socket } from 'node:net';

/** More than this of one interim head is left to the parser, which refuses it. */
const MAX_HEAD = 16_384;
const EMPTY: Buffer = Buffer.alloc(0);

export interface AnswerWatch {
    /** To be called before each request: the next bytes are the head of an answer. */
    expect(onFirstByte: () => void): void;
}

/**
 * Takes interim answers (100 to 199, but 101) out of what is read from a socket. A client must bear them unasked (RFC 9110,
 * 15.2), some older servers send `100 Continue` to every POST, and undici breaks the connection at one.
 */
export function filterInterim(socket: Socket): AnswerWatch {
    const read = socket.read.bind(socket);
    let held: Buffer = EMPTY;
    let firstByte: (() => void) | null = null;
    let watching = false;

    socket.read = (size?: number): Buffer | null => {
        if (!watching || size !== undefined) {
            return read(size);
        }

        for (let chunk = read(); chunk !== null; chunk = read()) {
            firstByte?.();
            firstByte = null;
            held = withoutInterim(Buffer.concat([held, chunk]));
            if (!mayBeInterim(held)) {
                const rest = held;
                held = EMPTY;
                watching = false;
                return rest;
            }
        }

        return null;
    };

    return {
        expect(onFirstByte) {
            held = EMPTY;
            firstByte = onFirstByte;
            watching = true;
        },
    };
}

const INTERIM = /^HTTP\/1\.\d 1(?!01)\d\d/;

/** The bytes behind all whole interim heads they start with. */
function withoutInterim(bytes: Buffer): Buffer {
    let rest = bytes;
    while (INTERIM.test(rest.toString('latin1', 0, 12))) {
        const end = rest.indexOf('\r\n\r\n');
        if (end === -1) {
            break;
        }

        rest = rest.subarray(end + 4);
    }

    return rest;
}

/** True for the start of an interim head, and for bytes that are still too few to tell. */
function mayBeInterim(bytes: Buffer): boolean {
    const start = bytes.toString('latin1', 0, 12);
    return bytes.length < MAX_HEAD && (start.length < 12 ? 'HTTP/1.1 1'.startsWith(start.slice(0, 10)) : INTERIM.test(start));
}
