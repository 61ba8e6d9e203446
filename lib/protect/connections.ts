import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as TlsListener } from 'node:https';
import type { Socket } from 'node:net';
import { addressBlock } from '../addresses.ts';
import { checked } from '../schema-validation.ts';
import { type Connection, greediestOf, hasBody, isOver, portsOf, slowestOf } from './connection.ts';
import { type CheckedLimits, type ConnectionLimits, type Limits, limitsSchema } from './connection-limits.ts';
import { HandshakeSlots } from './handshake-slots.ts';
import { secureInTurns } from './handshakes.ts';
import { assertListener, inContext, standBefore, whenUpgraded } from './listener.ts';
import { answerLongHeads } from './long-head.ts';
import { endLongPipelines } from './pipelining.ts';
import { ReaderWatch } from './reader-watch.ts';

/** What keeps the limits. */
export interface Protection {
    /** Looks at every connection now, and ends all that are over, however many. By itself it looks at all of them once a second, and ends few of those that wait. */
    sweep(): void;
    /** Connections that there are. */
    connections(): number;
}

/** How long a look at all of them takes, in so many steps: to go through thousands in one go keeps everybody else waiting. */
const ROUND_MS = 1_000;
const STEPS = 10;
/** Where there are no more, they are looked at in one step: a process with nothing to do is woken up no oftener than it must. */
const FEW = 8;
/** How many are ended in a turn of the event loop: all that is left of one is cleared away in the same turn. */
const ENDED_AT_ONCE = 8;
/**
 * How many that wait without a request are ended in a step, where they are many. Strangers who are ended come back at once, and what thousands of handshakes in
 * the same seconds cost everybody else is more than what their waiting does.
 */
const ENDED_IN_STEP = 12;
/** How many requests of all connections together may wait behind others of their connection. Each is held with its head; strangers could fill the memory with them. */
const MAX_BEHIND = 1_024;

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
        secureInTurns(listener, now, (socket, takeTurn) => connections.hello(socket, takeTurn));
    }
    listener.prependListener('connection', (socket: Socket) => connections.open(socket, isTls));
    listener.prependListener('secureConnection', (socket: Socket) => connections.secure(socket));
    standBefore(listener, 'request', (handle, request: IncomingMessage, response: ServerResponse) =>
        connections.request(request, response, handle),
    );
    endLongPipelines(listener, settings.maxUnanswered);
    whenUpgraded(listener, (socket) => connections.forget(socket));
    answerLongHeads(listener, (socket) => connections.isAnswering(socket as Socket));

    let timer: NodeJS.Timeout;
    const lookLater = (): void => {
        timer = setTimeout(look, connections.size <= FEW ? ROUND_MS : ROUND_MS / STEPS).unref();
    };
    function look(): void {
        connections.size <= FEW ? connections.sweep() : connections.goOn(listener.listening);
        lookLater();
    }
    lookLater();
    listener.on('close', () => clearTimeout(timer));
    listener.on('listening', () => {
        clearTimeout(timer);
        lookLater();
    });

    return { sweep: () => connections.sweep(), connections: () => connections.size };
}

/** One that is over. */
interface Ending {
    readonly connection: Connection;
    /** Whether it had no request when that was seen. */
    readonly isWaiting: boolean;
}

class Connections {
    readonly #limits: Limits;
    readonly #slots: HandshakeSlots;
    readonly #all = new Set<Connection>();
    readonly #ofSocket = new WeakMap<Socket, Connection>();
    /** Under TLS, by what the socket that was accepted has in common with the one that requests come from. */
    readonly #accepted = new Map<string | Socket, Connection>();
    /** Those without a request, the one that has waited longest first. */
    readonly #waiting = new Set<Connection>();
    /** Those whose body comes, or came when they were looked at last, in the order in which it began. */
    readonly #receiving = new Set<Connection>();
    readonly #perAddress = new Map<string, number>();
    /** Requests that wait behind others of their connection, of all of them. */
    #behind = 0;
    /** Those whose wait is over and that are spared, in the order in which that was seen. */
    readonly #over = new Set<Connection>();
    /** Where the look at all of them has come to, how many of those that were there when it began are left of it, and how many are a step of it. */
    #round = this.#all.values();
    #left = 0;
    #step = 0;

    constructor(limits: Limits) {
        this.#limits = limits;
        this.#slots = new HandshakeSlots(limits.maxWithoutRequest);
    }

    get size(): number {
        return this.#all.size;
    }

    open(socket: Socket, isTls: boolean): void {
        const { maxConnections, maxPerAddress = Infinity } = this.#limits;
        const address = addressBlock(socket.remoteAddress ?? '');
        const others = this.#perAddress.get(address) ?? 0;
        if (others >= maxPerAddress || (this.#all.size >= maxConnections && !this.#end(this.#dispensable))) {
            socket.destroy();
            return;
        }

        const now = this.#limits.now();
        const at = { since: now, receivingSince: now, receivedFrom: 0, windowSince: now, reader: new ReaderWatch(socket, now) };
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
            if (this.#accepted.get(ports) === connection) {
                this.#accepted.delete(ports);
            }
        });
    }

    /** The hello of this one has come: its handshake goes on once there is a slot for it. */
    hello(socket: Socket, takeTurn: () => void): void {
        const connection = this.#ofSocket.get(socket);
        if (connection !== undefined) {
            connection.stage = 'slot';
            this.#slots.take(connection, () => {
                Object.assign(connection, { stage: 'handshake', since: this.#limits.now() });
                takeTurn();
            });
        }
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
        this.#slots.release(connection);
        this.#waiting.delete(connection);
        this.#over.delete(connection);
        if (connection.unanswered > this.#limits.maxUnanswered) {
            connection.socket.destroy();
            return;
        }

        const now = this.#limits.now();
        Object.assign(connection, { receiving: request, receivingSince: now, receivedFrom: connection.socket.bytesRead, windowSince: now });
        this.#receiving.delete(connection);
        hasBody(request) && this.#receiving.add(connection);
        response.once('close', () => this.#answered(connection));
        // What is traced of a request is not part of the one before.
        if (connection.unanswered === 1) {
            handle();
            return;
        }

        connection.begin.push(inContext(handle));
        this.#behind += 1;
        if (this.#behind > MAX_BEHIND) {
            this.#end(greediestOf(this.#all));
        }
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
        this.#slots.makeRoom();
        const now = this.#limits.now();
        for (const connection of this.#all) {
            if (isOver(connection, this.#limits, now)) {
                connection.socket.destroy();
            }
        }
    }

    /**
     * Takes a step of a round: looks at the next ones, and ends some of those that are over.
     *
     * @param canComeBack Whether those that are ended can: else none is spared.
     */
    goOn(canComeBack: boolean): void {
        const now = this.#limits.now();
        this.#slots.makeRoom();
        const ending: Connection[] = [];
        for (const connection of this.#nextStep()) {
            if (isOver(connection, this.#limits, now)) {
                canComeBack && this.#isSpared(connection) ? this.#over.add(connection) : ending.push(connection);
            }
        }

        const most = ending.length + (canComeBack ? ENDED_IN_STEP : this.#over.size);
        for (const connection of this.#over) {
            if (ending.length === most) {
                break;
            }

            this.#over.delete(connection);
            // Something may have come while it was spared.
            if (isOver(connection, this.#limits, now)) {
                ending.push(connection);
            }
        }
        this.#endInTurns(
            ending.map((connection) => {
                // A body that is too slow, behind its answer too, would be given another window when it is asked again.
                return { connection, isWaiting: connection.receiving === null && this.#waiting.has(connection) };
            }),
        );
    }

    /** Those that come meanwhile wait for the next round: a round that went on to them would never end while as many come as are looked at. */
    *#nextStep(): Generator<Connection> {
        if (this.#left === 0) {
            this.#round = this.#all.values();
            this.#left = this.#all.size;
            this.#step = Math.ceil(this.#left / STEPS);
        }

        for (let count = 0; count < this.#step && this.#left > 0; count += 1) {
            const { value, done } = this.#round.next();
            if (done) {
                this.#left = 0;
                return;
            }
            this.#left -= 1;
            yield value;
        }
    }

    /** Whether it may take its time to end: it keeps no work of ours waiting, and takes nobody's place. */
    #isSpared({ address, unanswered, receiving }: Connection): boolean {
        const { maxPerAddress = Infinity } = this.#limits;
        return unanswered === 0 && receiving === null && (this.#perAddress.get(address) ?? 0) < maxPerAddress;
    }

    #endInTurns(ending: readonly Ending[]): void {
        for (const { connection, isWaiting } of ending.slice(0, ENDED_AT_ONCE)) {
            // A request may have come in the turns since, and have been answered.
            if (!isWaiting || (this.#waiting.has(connection) && isOver(connection, this.#limits, this.#limits.now()))) {
                connection.socket.destroy();
            }
        }
        if (ending.length > ENDED_AT_ONCE) {
            setImmediate(() => this.#endInTurns(ending.slice(ENDED_AT_ONCE)));
        }
    }

    /** The one that has waited longest without a request; where all have one, one whose body hardly comes. Such a one costs a stranger no more. */
    get #dispensable(): Connection | undefined {
        return this.#waiting.values().next().value ?? slowestOf(this.#receiving, this.#limits, this.#limits.now());
    }

    #answered(connection: Connection): void {
        connection.unanswered -= 1;
        Object.assign(connection, { stage: 'idle', since: this.#limits.now(), bytesRead: connection.socket.bytesRead });
        if (connection.unanswered === 0 && this.#all.has(connection)) {
            this.#waiting.add(connection);
            // Node ends a connection that waits for its next request by a timer of its own, and thousands together.
            connection.socket.setTimeout(0);
        }
        const next = connection.socket.destroyed ? undefined : connection.begin.shift();
        if (next !== undefined) {
            this.#behind -= Number(this.#all.has(connection));
            next();
        }
    }

    #remove(connection: Connection): void {
        if (this.#all.delete(connection)) {
            const { address } = connection;
            this.#behind -= connection.begin.length;
            this.#slots.release(connection);
            this.#waiting.delete(connection);
            this.#receiving.delete(connection);
            this.#over.delete(connection);
            const others = (this.#perAddress.get(address) ?? 1) - 1;
            others === 0 ? this.#perAddress.delete(address) : this.#perAddress.set(address, others);
        }
    }

    /** Ends it, if there is one. */
    #end(connection: Connection | undefined): boolean {
        if (connection !== undefined) {
            this.#remove(connection);
            connection.socket.destroy();
        }
        return connection !== undefined;
    }
}
