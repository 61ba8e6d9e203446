/** What a client of TLS says first, kept from TLS until it is whole. */
import type { Socket } from 'node:net';

/** The head of a record of TLS, whose last two bytes say how much follows; the head of a message in it, whose last three do. */
const RECORD_HEAD = 5;
const MESSAGE_HEAD = 4;
const HANDSHAKE = 22;
const CLIENT_HELLO = 1;

/**
 * The most that is kept of a client. A hello with a key share that withstands quantum computers takes 1.8 KiB; a second of them, a ticket
 * with a chain of certificates in it and a long list of protocols make it 6 or 7.
 */
const MAX_BYTES = 8192;

/**
 * Calls back once what a client must say before it is answered has come, or what can be none. A connection that breaks or ends before TLS
 * begins is destroyed, and that is all there is to say of it; so is one that says more than is kept. What stands behind a hello is kept as
 * well: a client may send data at once that the server before this one has allowed it, which TLS passes over.
 */
export function whenSaidHello(socket: Socket, act: (secure: (begin: () => void) => void) => void): void {
    const hello = new ClientHello();
    let isSaid = false;
    const onReadable = (): void => {
        const chunk = socket.read() as Buffer | null;
        if (chunk === null) {
            return;
        }

        const state = hello.add(chunk);
        if (state === 'too long') {
            socket.destroy();
        } else if (state === 'whole' && !isSaid) {
            isSaid = true;
            act((begin) => {
                socket.off('readable', onReadable).off('end', onEnd).off('error', ignored);
                socket.unshift(hello.bytes);
                begin();
            });
        }
    };
    const onEnd = (): void => void socket.destroy();
    const ignored = (): void => {};
    socket.on('readable', onReadable).on('end', onEnd).on('error', ignored);
}

type State = 'whole' | 'part' | 'too long';

/** Bytes of a client. They may come one by one, and in as many records: each costs no more than if all came at once. */
class ClientHello {
    #kept: Buffer = Buffer.alloc(0);
    #length = 0;
    /** Where the record begins that is looked at, and how much of the message was in those before. */
    #record = 0;
    #inRecords = 0;
    /** The head of the message, as far as it has come. */
    readonly #head: number[] = [];

    get bytes(): Buffer {
        return this.#kept.subarray(0, this.#length);
    }

    add(chunk: Buffer): State {
        const length = this.#length + chunk.length;
        if (length > MAX_BYTES) {
            return 'too long';
        }

        if (this.#length === 0) {
            this.#kept = chunk;
        } else {
            if (length > this.#kept.length) {
                const more = Buffer.alloc(Math.min(2 * length, MAX_BYTES));
                this.#kept.copy(more);
                this.#kept = more;
            }
            chunk.copy(this.#kept, this.#length);
        }
        this.#length = length;
        return this.#look();
    }

    /** What is no hello is whole: TLS says so. */
    #look(): State {
        while (this.#length > this.#record) {
            if (this.#kept[this.#record] !== HANDSHAKE) {
                return 'whole';
            }
            const from = this.#record + RECORD_HEAD;
            if (this.#length < from) {
                return 'part';
            }

            const end = from + this.#kept.readUInt16BE(from - 2);
            this.#readHead(from, Math.min(end, this.#length));
            const needed = this.#needed();
            if (needed === 0) {
                return 'whole';
            }
            if (end > MAX_BYTES || needed > MAX_BYTES) {
                return 'too long';
            }
            // TLS takes no part of a record.
            if (end > this.#length) {
                return 'part';
            }
            if (this.#inRecords + end - from >= needed) {
                return 'whole';
            }
            this.#record = end;
            this.#inRecords += end - from;
        }
        return 'part';
    }

    #readHead(from: number, to: number): void {
        for (let at = from + this.#head.length - this.#inRecords; at < to && this.#head.length < MESSAGE_HEAD; at += 1) {
            this.#head.push(this.#kept[at] ?? 0);
        }
    }

    /** Bytes of the message with its head, as far as is known; 0 of another message than a hello. */
    #needed(): number {
        const [type = CLIENT_HELLO, high = 0, middle = 0, low = 0] = this.#head;
        return type === CLIENT_HELLO ? MESSAGE_HEAD + high * 65_536 + middle * 256 + low : 0;
    }
}
