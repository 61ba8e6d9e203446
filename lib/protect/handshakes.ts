/** When TLS begins on the connections of a listener: what strangers send for it must not stand before the requests of others. */
import { constants } from 'node:crypto';
import type { Server as TlsListener } from 'node:https';
import type { Socket } from 'node:net';
import { createSecureContext, DEFAULT_CIPHERS } from 'node:tls';
import { addressBlock } from '../addresses.ts';
import { whenSaidHello } from './client-hello.ts';
import { inContext, standBefore } from './listener.ts';

/** How many begin in a turn of the event loop: one for so long as the turn took, at least one. */
const TURN_MS = 5;
const MAX_IN_TURN = 8;

/**
 * Begins TLS on a connection when the hello of its client has come whole, and on one connection in each turn of the event loop, on more
 * where turns take long. What is silent or slow costs a socket until then and no more: to make a session and to end it takes ten times as
 * long as the rest. To answer a hello takes longer again, and hundreds may come at once: what others ask for is handled in between.
 * Addresses take turns.
 *
 * @param whenMayBegin Is given each connection whose hello has come, and what has it take its turn.
 */
export function secureInTurns(
    listener: TlsListener,
    now: () => number,
    whenMayBegin: (socket: Socket, takeTurn: () => void) => void,
): void {
    const handshakes = new Handshakes(now);
    standBefore(listener, 'connection', (begin, socket: Socket) => {
        whenSaidHello(socket, (secure) => {
            const secureInContext = inContext(() => secure(begin));
            whenMayBegin(socket, () => handshakes.add(socket, secureInContext));
        });
    });
}

/** Connections whose hello has come and on which TLS has not begun. */
export class Handshakes {
    readonly #now: () => number;
    /** By address, the one first whose turn it is. */
    readonly #waiting = new Map<string, Map<Socket, () => void>>();
    /** When what others do in this turn began, while the next one is waited for. */
    #since: number | null = null;

    constructor(now: () => number) {
        this.#now = now;
    }

    add(socket: Socket, begin: () => void): void {
        const address = addressBlock(socket.remoteAddress ?? '');
        const others = this.#waiting.get(address) ?? new Map<Socket, () => void>();
        this.#waiting.set(address, others.set(socket, begin));
        socket.once('close', () => this.#forget(address, socket));
        this.#goOn();
    }

    #goOn(): void {
        if (this.#since === null && this.#waiting.size > 0) {
            this.#since = this.#now();
            setImmediate(() => this.#beginSome());
        }
    }

    #beginSome(): void {
        const now = this.#now();
        const took = now - (this.#since ?? now);
        for (let left = Math.min(Math.max(Math.floor(took / TURN_MS), 1), MAX_IN_TURN); left > 0; left -= 1) {
            this.#beginNext();
        }
        // TLS answers what it was given in the ticks that follow, which are not what others do.
        process.nextTick(() => {
            this.#since = null;
            this.#goOn();
        });
    }

    #beginNext(): void {
        for (const [address, others] of this.#waiting) {
            this.#waiting.delete(address);
            const [[socket, begin] = []] = others;
            if (socket !== undefined && begin !== undefined) {
                others.delete(socket);
                if (others.size > 0) {
                    // Set again, it comes last.
                    this.#waiting.set(address, others);
                }
                begin();
                return;
            }
        }
    }

    #forget(address: string, socket: Socket): void {
        const others = this.#waiting.get(address);
        if (others?.delete(socket) && others.size === 0) {
            this.#waiting.delete(address);
        }
    }
}

/** Key exchanges that take at most a few milliseconds, those to be preferred first. */
const QUICK_EXCHANGES = ['X25519MLKEM768', 'X25519', 'P-256', 'P-384'];

/**
 * Options of `node:https` without which a stranger chooses how long a handshake takes, and when: Node agrees to an exchange of keys that takes
 * a tenth of a second and that a client need not compute its part of (`ffdhe8192`), to one that uses an RSA key later than in the answer to
 * the hello (ciphers of TLS 1.2 without forward secrecy), and to further handshakes on one connection.
 *
 * @example
 * const server = Hapi.server({ tls: { key, cert, ...handshakeOptions() } });
 */
export function handshakeOptions(): { readonly ecdhCurve: string; readonly ciphers: string; readonly secureOptions: number } {
    return {
        ecdhCurve: QUICK_EXCHANGES.filter(isKnown).join(':'),
        ciphers: `${DEFAULT_CIPHERS}:!kRSA`,
        secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    };
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
