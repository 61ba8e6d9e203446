/** When TLS begins on the connections of a listener: what strangers send for it must not stand before the requests of others. */
import { AsyncResource } from 'node:async_hooks';
import { constants } from 'node:crypto';
import type { Server as TlsListener } from 'node:https';
import type { Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import { addressBlock } from '../addresses.ts';
import { standBefore } from './listener.ts';

/** The head of a record of TLS, whose last two bytes say how much follows; and the most that may. */
const RECORD_HEAD = 5;
const MOST_BYTES = RECORD_HEAD + 16_384;
const HANDSHAKE = 22;

/**
 * Begins TLS on a connection when the hello of its client has come whole, and on one connection in each turn of the event loop. What is
 * silent or slow costs a socket until then and no more: to make a session and to end it takes ten times as long as the rest. To answer a
 * hello takes longer again, and hundreds may come at once: what others ask for is handled in between. Addresses take turns.
 */
export function secureInTurns(listener: TlsListener): void {
    const turns = new Turns();
    standBefore(listener, 'connection', (begin, socket: Socket) => {
        whenSaidHello(socket, (secure) =>
            turns.add(addressBlock(socket.remoteAddress ?? ''), { socket, begin: AsyncResource.bind(() => secure(begin)) }),
        );
    });
}

/**
 * Calls back once what a client must say before it is answered has come, or what can be none. A connection that breaks or ends before TLS
 * begins is destroyed, and that is all there is to say of it; so is one that sends what nobody sends before an answer.
 */
function whenSaidHello(socket: Socket, act: (secure: (begin: () => void) => void) => void): void {
    let hello: Buffer = Buffer.alloc(0);
    let isWhole = false;
    const onReadable = (): void => {
        const chunk = socket.read() as Buffer | null;
        if (chunk === null) {
            return;
        }

        hello = hello.length === 0 ? chunk : Buffer.concat([hello, chunk]);
        if (hello.length > MOST_BYTES) {
            socket.destroy();
        } else if (!isWhole && isHello(hello)) {
            isWhole = true;
            act((begin) => {
                socket.off('readable', onReadable).off('end', onEnd).off('error', ignored);
                socket.unshift(hello);
                begin();
            });
        }
    };
    const onEnd = (): void => void socket.destroy();
    const ignored = (): void => {};
    socket.on('readable', onReadable).on('end', onEnd).on('error', ignored);
}

/** A record that is whole, or what TLS will not take for the beginning of one. */
function isHello(bytes: Buffer): boolean {
    return bytes[0] !== HANDSHAKE || (bytes.length >= RECORD_HEAD && bytes.length >= RECORD_HEAD + bytes.readUInt16BE(RECORD_HEAD - 2));
}

interface Waiting {
    readonly socket: Socket;
    begin(): void;
}

/** Who waits for TLS to begin. */
class Turns {
    /** By address, the one whose turn it is first. */
    readonly #waiting = new Map<string, Set<Waiting>>();

    add(address: string, one: Waiting): void {
        if (this.#waiting.size === 0) {
            setImmediate(() => this.#goOn());
        }
        const others = this.#waiting.get(address) ?? new Set();
        this.#waiting.set(address, others.add(one));
    }

    #goOn(): void {
        const next = this.#take();
        if (this.#waiting.size > 0) {
            setImmediate(() => this.#goOn());
        }
        next?.begin();
    }

    /** The next one whose connection is still there. */
    #take(): Waiting | undefined {
        for (const [address, others] of this.#waiting) {
            this.#waiting.delete(address);
            for (const one of others) {
                others.delete(one);
                if (!one.socket.destroyed) {
                    if (others.size > 0) {
                        // Set again, it comes last.
                        this.#waiting.set(address, others);
                    }
                    return one;
                }
            }
        }
        return undefined;
    }
}

/** Key exchanges that take at most a few milliseconds, those to be preferred first. */
const QUICK_EXCHANGES = ['X25519MLKEM768', 'X25519', 'P-256', 'P-384'];

/**
 * Options of `node:https` without which a stranger chooses how long a handshake takes: Node agrees to an exchange of keys that takes a tenth of a
 * second and that a client need not compute its part of (`ffdhe8192`), and to further handshakes on one connection.
 *
 * @example
 * const server = Hapi.server({ tls: { key, cert, ...handshakeOptions() } });
 */
export function handshakeOptions(): { readonly ecdhCurve: string; readonly secureOptions: number } {
    return { ecdhCurve: QUICK_EXCHANGES.filter(isKnown).join(':'), secureOptions: constants.SSL_OP_NO_RENEGOTIATION };
}

/** Not all are to every version of OpenSSL. */
function isKnown(ecdhCurve: string): boolean {
    try {
        createSecureContext({ ecdhCurve });
        return true;
    } catch {
        return false;
    }
}
