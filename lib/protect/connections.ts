import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as TlsListener } from 'node:https';
import type { Socket } from 'node:net';
import { addressBlock } from '../addresses.ts';
import { checked } from '../schema-validation.ts';
import { type CheckedLimits, type ConnectionLimits, type Limits, limitsSchema } from './connection-limits.ts';
import { secureInTurns } from './handshakes.ts';
import { assertListener, standBefore, whenUpgraded } from './listener.ts';
import { answerLongHeads } from './long-head.ts';
import { endLongPipelines } from './pipelining.ts';
import { ReaderWatch } from './reader-watch.ts';

/** What keeps the limits. */
export interface Protection {
    /** Looks at every connection now, as it does by itself once a second. */
    sweep(): void;
    /** Connections that there are. */
    connections(): number;
}

/** How long it takes until all are looked at, in so many steps: to end hundreds in one go keeps everybody else waiting. */
const SWEEP_MS = 1_000;
const SWEEP_STEPS = 10;
/** How many are ended in a turn of the event loop. */
const ENDED_AT_ONCE = 8;
/** How many that wait without a request are ended in a second where they are many: strangers come back at once, and the handshake costs more than the wait did. */
const ENDED_PER_SECOND = 120;

/**
 * Keeps the connections of a listener within limits: what exceeds them is destroyed, and a request whose head is too long answered with a 431. To be called once, before the server listens. Takes
 * over `requestTimeout`, `headersTimeout` and `keepAliveTimeout` of the listener, which Node looks at every half a minute. Connections that
 * a host upgrades are its own from then on.
 *
 * @param listener Of `node:http` or `node:https`, for example the `listener` of a hapi server.
 * @throws ScanwireError `MISCONFIGURED` that names the limit.
 *
 * @example
 * protect(server.listener, { maxPerAddress: 100 });
 */
export function protect(listener: Server | TlsListener, limits: ConnectionLimits = {}): Protection {
    assertListener(listener);
    const settings = checked<CheckedLimits>(limitsSchema, limits, { subject: 'protect limits', code: 'MISCONFIGURED' });
    const { now = () => performance.now() } = settings;
    const connections = new Connections({ isLong: () => false, ...settings, now });
    listener.requestTimeout = 0;
    listener.headersTimeout = 0;
    listener.keepAliveTimeout = settings.idleTimeout;

    const isTls = 'setSecureContext' in listener;
    if (isTls) {
        secureInTurns(listener, now);
    }
    listener.prependListener('connection', (socket: Socket) => connections.open(socket, isTls));
    listener.prependListener('secureConnection', (socket: Socket) => connections.secure(socket));
    standBefore(listener, 'request', (handle, request: IncomingMessage, response: ServerResponse) =>
        connections.request(request, response, handle),
    );
    endLongPipelines(listener, settings.maxUnanswered);
    whenUpgraded(listener, (socket) => connections.forget(socket));
    answerLongHeads(listener, (socket) => connections.isAnswering(socket as Socket));

    let timer = setTimeout(look, SWEEP_MS).unref();
    listener.once('close', () => clearTimeout(timer));

    // Where there are few, a process with nothing to do is woken up no oftener than it must.
    function look(): void {
        const areFew = connections.size <= ENDED_AT_ONCE;
        areFew ? connections.sweep() : connections.goOn();
        timer = setTimeout(look, areFew ? SWEEP_MS : SWEEP_MS / SWEEP_STEPS).unref();
    }

    return { sweep: () => connections.sweep(), connections: () => connections.size };
}

interface Connection {
    /** The one that requests come from; under TLS another than the one that was accepted. */
    socket: Socket;
    readonly address: string;
    stage: 'handshake' | 'head' | 'idle';
    /** When the stage began. */
    since: number;
    /** Bytes that had come when the stage, or the window of a body, began. */
    bytesRead: number;
    unanswered: number;
    /** Begin the requests behind the one that is handled. */
    readonly begin: (() => void)[];
    /** The last request, while its body comes. */
    receiving: IncomingMessage | null;
    receivingSince: number;
    windowSince: number;
    reader: ReaderWatch;
}

class Connections {
    readonly #limits: Limits;
    readonly #all = new Set<Connection>();
    readonly #ofSocket = new WeakMap<Socket, Connection>();
    /** Under TLS, by what the socket that was accepted has in common with the one that requests come from. */
    readonly #accepted = new Map<string, Connection>();
    /** Those without a request, the one that has waited longest first. */
    readonly #waiting = new Set<Connection>();
    readonly #perAddress = new Map<string, number>();
    /** Where the look at all of them has come to. */
    #round = this.#all.values();
    /** How many that wait without a request may be ended now. */
    #mayEnd = 0;

    constructor(limits: Limits) {
        this.#limits = limits;
    }

    get size(): number {
        return this.#all.size;
    }

    open(socket: Socket, isTls: boolean): void {
        const { maxConnections, maxPerAddress = Infinity } = this.#limits;
        const address = addressBlock(socket.remoteAddress ?? '');
        const others = this.#perAddress.get(address) ?? 0;
        if (others >= maxPerAddress || (this.#all.size >= maxConnections && !this.#makeRoom())) {
            socket.destroy();
            return;
        }

        const now = this.#limits.now();
        const at = { since: now, receivingSince: now, windowSince: now, reader: new ReaderWatch(socket, now) };
        const stage = isTls ? 'handshake' : 'head';
        const connection: Connection = { socket, address, stage, ...at, bytesRead: 0, unanswered: 0, begin: [], receiving: null };
        this.#all.add(connection);
        this.#waiting.add(connection);
        this.#perAddress.set(address, others + 1);
        this.#ofSocket.set(socket, connection);
        const ports = portsOf(socket);
        if (isTls) {
            this.#accepted.set(ports, connection);
        }

        socket.once('close', () => {
            this.#remove(connection);
            this.#accepted.delete(ports);
        });
    }

    /** Requests come from this one now. */
    secure(socket: Socket): void {
        const connection = this.#accepted.get(portsOf(socket));
        if (connection !== undefined) {
            this.#accepted.delete(portsOf(socket));
            this.#ofSocket.set(socket, connection);
            const now = this.#limits.now();
            Object.assign(connection, { socket, stage: 'head', since: now, reader: new ReaderWatch(socket, now) });
        }
    }

    /** Requests of a connection are handled one after the other, as their answers go: who sends many at once takes no more than others. */
    request(request: IncomingMessage, response: ServerResponse, handle: () => void): void {
        const connection = this.#ofSocket.get(request.socket);
        if (connection === undefined) {
            handle();
            return;
        }

        connection.unanswered += 1;
        this.#waiting.delete(connection);
        if (connection.unanswered > this.#limits.maxUnanswered) {
            connection.socket.destroy();
            return;
        }

        const now = this.#limits.now();
        Object.assign(connection, { receiving: request, receivingSince: now, windowSince: now });
        response.once('close', () => this.#answered(connection));
        // What is traced of a request is not part of the one before.
        connection.unanswered === 1 ? handle() : connection.begin.push(AsyncResource.bind(handle));
    }

    /** Whether a request of the connection has no whole answer yet. */
    isAnswering(socket: Socket): boolean {
        return (this.#ofSocket.get(socket)?.unanswered ?? 0) > 0;
    }

    /** No longer looks after the connection. */
    forget(socket: Socket): void {
        const connection = this.#ofSocket.get(socket);
        if (connection !== undefined) {
            this.#remove(connection);
        }
    }

    sweep(): void {
        this.#mayEnd = Infinity;
        for (const connection of this.#all) {
            this.#endIfOver(connection);
        }
        this.#mayEnd = 0;
    }

    /** Looks at the next ones, a step of a sweep. */
    goOn(): void {
        this.#mayEnd = Math.min(this.#mayEnd + ENDED_PER_SECOND / SWEEP_STEPS, ENDED_PER_SECOND);
        this.#look(Math.ceil(this.#all.size / SWEEP_STEPS));
    }

    /** Ends some of them later if they are many: all that is left of one is cleared away in the same turn. */
    #look(looks: number): void {
        let ended = 0;
        for (let left = looks; left > 0; left -= 1) {
            const { value, done } = this.#round.next();
            if (done) {
                this.#round = this.#all.values();
                return;
            }
            ended += this.#endIfOver(value) ? 1 : 0;
            if (ended === ENDED_AT_ONCE) {
                setImmediate(() => this.#look(left - 1));
                return;
            }
        }
    }

    #endIfOver(connection: Connection): boolean {
        const waits = this.#waiting.has(connection);
        if ((waits && this.#mayEnd < 1) || !this.#isOver(connection, this.#limits.now())) {
            return false;
        }

        this.#mayEnd -= waits ? 1 : 0;
        connection.socket.destroy();
        return true;
    }

    #answered(connection: Connection): void {
        connection.unanswered -= 1;
        Object.assign(connection, { stage: 'idle', since: this.#limits.now(), bytesRead: connection.socket.bytesRead });
        if (connection.unanswered === 0 && this.#all.has(connection)) {
            this.#waiting.add(connection);
        }
        if (!connection.socket.destroyed) {
            connection.begin.shift()?.();
        }
    }

    #remove(connection: Connection): void {
        if (this.#all.delete(connection)) {
            const { address } = connection;
            this.#waiting.delete(connection);
            const others = (this.#perAddress.get(address) ?? 1) - 1;
            others === 0 ? this.#perAddress.delete(address) : this.#perAddress.set(address, others);
        }
    }

    /** Ends the connection that has waited longest without a request; false when all have one. */
    #makeRoom(): boolean {
        const [longest] = this.#waiting;
        if (longest === undefined) {
            return false;
        }

        this.#remove(longest);
        longest.socket.destroy();
        return true;
    }

    #isOver(connection: Connection, now: number): boolean {
        const { receiving } = connection;
        if (receiving?.complete) {
            connection.receiving = null;
        } else if (receiving !== null) {
            return this.#bodyIsOver(connection, receiving, now) || this.#answerIsOver(connection, now);
        }

        return connection.unanswered > 0 ? this.#answerIsOver(connection, now) : this.#waitIsOver(connection, now);
    }

    #waitIsOver(connection: Connection, now: number): boolean {
        const { handshakeTimeout, headTimeout, idleTimeout } = this.#limits;
        const { stage, since, socket } = connection;
        const timeout = { handshake: handshakeTimeout, head: headTimeout, idle: idleTimeout }[stage];
        if (now - since < timeout) {
            return false;
        }

        if (stage === 'idle' && socket.bytesRead > connection.bytesRead) {
            // The next request has begun to come.
            connection.stage = 'head';
            connection.since = now;
            return false;
        }

        return true;
    }

    #bodyIsOver(connection: Connection, request: IncomingMessage, now: number): boolean {
        const { bodyTimeout, minRate, requestTimeout, isLong } = this.#limits;
        if (now - connection.receivingSince >= requestTimeout && !isLong(request)) {
            return true;
        }

        const { bytesRead } = connection.socket;
        const passed = now - connection.windowSince;
        // What was received and is not read yet holds the rest back: that is ours.
        const isOurs = connection.unanswered > 0 && request.readableLength > 0;
        if (passed < bodyTimeout && !isOurs) {
            return false;
        }

        const isSlow = !isOurs && bytesRead - connection.bytesRead < (minRate * passed) / 1000;
        connection.windowSince = now;
        connection.bytesRead = bytesRead;
        return isSlow;
    }

    #answerIsOver({ reader }: Connection, now: number): boolean {
        return reader.pausedFor(now) >= this.#limits.answerTimeout;
    }
}

function portsOf({ remoteAddress, remotePort, localPort }: Socket): string {
    return `${remoteAddress} ${remotePort} ${localPort}`;
}
