/** When TLS begins on the connections of a listener: what strangers send for it must not stand before the requests of others. */
import { AsyncResource } from 'node:async_hooks';
import { constants } from 'node:crypto';
import type { Server as TlsListener } from 'node:https';
import type { Socket } from 'node:net';
import { createSecureContext, DEFAULT_CIPHERS } from 'node:tls';
import { addressBlock } from '../addresses.ts';
import { whenSaidHello } from './client-hello.ts';
import { standBefore } from './listener.ts';

/** Connections on which TLS has begun and that are not secure yet, of all addresses and of one. */
const MOST_BEGUN = 64;
const MOST_OF_ADDRESS = 16;
/** How long one of them keeps others waiting at the most: several times what a client far away takes. */
const PATIENCE_MS = 1_000;

/** How many begin in a turn of the event loop: one for so long as the turn took, at least one. */
const TURN_MS = 5;
const MOST_IN_TURN = 8;

/**
 * Begins TLS on a connection when the hello of its client has come whole, and on one connection in each turn of the event loop, on more
 * where turns take long. What is silent or slow costs a socket until then and no more: to make a session and to end it takes ten times as
 * long as the rest. To answer a hello takes longer again, and hundreds may come at once: what others ask for is handled in between.
 * Addresses take turns. What a client sends next comes to TLS without a turn, and may have it answer once more: so few are there at once.
 */
export function secureInTurns(listener: TlsListener, now: () => number): Handshakes {
    const handshakes = new Handshakes(now);
    standBefore(listener, 'connection', (begin, socket: Socket) => {
        whenSaidHello(socket, (secure) =>
            handshakes.add(
                socket,
                AsyncResource.bind(() => secure(begin)),
            ),
        );
    });
    return handshakes;
}

interface Begun {
    readonly address: string;
    readonly since: number;
}

/** Connections from the hello of the client until they are secure. */
export class Handshakes {
    readonly #now: () => number;
    /** By address those that wait for TLS to begin, the address first whose turn it is. */
    readonly #waiting = new Map<string, Map<Socket, () => void>>();
    /** Those on which it has begun, the first in front. */
    readonly #begun = new Map<Socket, Begun>();
    /** When what others do in this turn began, while the next one is waited for. */
    #since: number | null = null;

    constructor(now: () => number) {
        this.#now = now;
    }

    add(socket: Socket, begin: () => void): void {
        const address = addressBlock(socket.remoteAddress ?? '');
        const others = this.#waiting.get(address) ?? new Map<Socket, () => void>();
        this.#waiting.set(address, others.set(socket, begin));
        socket.once('close', () => {
            this.#forget(address, socket);
            this.end(socket);
        });
        this.goOn();
    }

    /** The handshake of the connection has ended, well or not. */
    end(socket: Socket): void {
        if (this.#begun.delete(socket)) {
            this.goOn();
        }
    }

    /** Lets those begin that may, in the next turn of the event loop. */
    goOn(): void {
        if (this.#since === null && this.#waiting.size > 0) {
            this.#since = this.#now();
            setImmediate(() => this.#beginSome());
        }
    }

    #beginSome(): void {
        const now = this.#now();
        const took = now - (this.#since ?? now);
        this.#since = null;
        for (let left = Math.min(Math.max(Math.floor(took / TURN_MS), 1), MOST_IN_TURN); left > 0; left -= 1) {
            const address = this.#next(now);
            if (address === undefined) {
                // Until one ends, or has had its time.
                return;
            }
            this.#begin(address, now);
        }
        this.goOn();
    }

    /** The next address that may have one more. Where there are too many, the one that began first gives way, if it has had its time. */
    #next(now: number): string | undefined {
        const first = this.#begun.size < MOST_BEGUN ? undefined : [...this.#begun][0];
        if (first !== undefined && !hasHadTime(first, now)) {
            return undefined;
        }

        for (const address of this.#waiting.keys()) {
            const ofAddress = [...this.#begun].filter(([, begun]) => begun.address === address);
            const inTheWay = ofAddress.length < MOST_OF_ADDRESS ? first : ofAddress[0];
            if (inTheWay === undefined || hasHadTime(inTheWay, now)) {
                this.#giveUp(inTheWay);
                return address;
            }
        }
        return undefined;
    }

    #giveUp([socket]: readonly [Socket?, Begun?] = []): void {
        if (socket !== undefined) {
            this.#begun.delete(socket);
            socket.destroy();
        }
    }

    #begin(address: string, since: number): void {
        const others = this.#waiting.get(address) ?? new Map<Socket, () => void>();
        this.#waiting.delete(address);
        for (const [socket, begin] of others) {
            others.delete(socket);
            if (!socket.destroyed) {
                if (others.size > 0) {
                    // Set again, it comes last.
                    this.#waiting.set(address, others);
                }
                this.#begun.set(socket, { address, since });
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

function hasHadTime([, { since }]: readonly [Socket, Begun], now: number): boolean {
    return now - since >= PATIENCE_MS;
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
