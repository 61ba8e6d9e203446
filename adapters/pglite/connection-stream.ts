import { Duplex } from 'node:stream';
import { Frontend, messages } from './wire.ts';

export interface ConnectionStreamOptions {
    /** Takes the opening packet first, then whole messages up to a Query, Sync or Flush. */
    send(bytes: Buffer): void;
    /** Called once, when the connection has ended or broken. */
    leave(): void;
    /** Why no connection can be made; null while one can. */
    refusal(): Error | null;
}

/** What node-postgres calls on a socket beyond what every stream has. */
interface SocketLike {
    connect(): void;
    setNoDelay(): void;
    setKeepAlive(): void;
    ref(): void;
    unref(): void;
}

/** Looks to a node-postgres client like its socket to a server; the server is wherever `send` leads. */
export function connectionStream({ send, leave, refusal }: ConnectionStreamOptions): Duplex & SocketLike {
    let unsent: Buffer = Buffer.alloc(0);
    let opened = false;
    let left = false;

    function take(bytes: Buffer): void {
        unsent = unsent.length === 0 ? bytes : Buffer.concat([unsent, bytes]);
        const length = opened ? sendable(unsent) : unsent.length;
        if (length > 0) {
            opened = true;
            send(unsent.subarray(0, length));
            unsent = unsent.subarray(length);
        }
    }

    function leaveOnce(): void {
        if (!left) {
            left = true;
            leave();
        }
    }

    const stream = new Duplex({
        read() {
            // What arrives is pushed; it is in memory already.
        },
        write(bytes: Buffer, _encoding, done) {
            take(bytes);
            done();
        },
        writev(chunks, done) {
            take(Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer)));
            done();
        },
        final(done) {
            leaveOnce();
            stream.push(null);
            done();
        },
        destroy(error, done) {
            leaveOnce();
            done(error);
        },
    });

    return Object.assign(stream, {
        connect() {
            const refused = refusal();
            process.nextTick(() => (refused === null ? stream.emit('connect') : stream.destroy(refused)));
        },
        setNoDelay() {},
        setKeepAlive() {},
        ref() {},
        unref() {},
    });
}

/** Length of the part that ends with a message which asks for an answer. */
function sendable(bytes: Buffer): number {
    let length = 0;
    for (const { type, end } of messages(bytes)) {
        length = type === Frontend.query || type === Frontend.sync || type === Frontend.flush ? end : length;
    }

    return length;
}
