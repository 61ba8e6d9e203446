import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Limits } from './connection-limits.ts';
import type { ReaderWatch } from './reader-watch.ts';

/** What is known of a connection that is kept within limits. */
export interface Connection {
    /** The one that requests come from; under TLS another than the one that was accepted. */
    socket: Socket;
    readonly address: string;
    /** Of a handshake `slot` is the part in which it waits for ours. */
    stage: 'handshake' | 'slot' | 'head' | 'idle';
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
    /** Bytes that had come by then. */
    receivedFrom: number;
    windowSince: number;
    reader: ReaderWatch;
}

/** Whether it has taken longer for something than the limits allow. Notes what has come since it was asked before. */
export function isOver(connection: Connection, limits: Limits, now: number): boolean {
    const { receiving } = connection;
    if (receiving?.complete) {
        connection.receiving = null;
    } else if (receiving !== null) {
        return bodyIsOver(connection, receiving, limits, now) || answerIsOver(connection, limits, now);
    }

    return connection.unanswered > 0 ? answerIsOver(connection, limits, now) : waitIsOver(connection, limits, now);
}

function waitIsOver(connection: Connection, limits: Limits, now: number): boolean {
    const { handshakeTimeout, headTimeout, idleTimeout } = limits;
    const { stage, since, socket } = connection;
    const timeout = { handshake: handshakeTimeout, slot: Infinity, head: headTimeout, idle: idleTimeout }[stage];
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

function bodyIsOver(connection: Connection, request: IncomingMessage, limits: Limits, now: number): boolean {
    const { bodyTimeout, minRate, requestTimeout, isLong } = limits;
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

/** Whether a body comes with it, as its head says. */
export function hasBody({ headers }: IncomingMessage): boolean {
    return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Milliseconds of a body before which nothing is said of its pace. */
const JUDGED_AFTER = 1_000;
/** What comes at this many times the least rate is sent by somebody who means it. */
const QUICK = 16;
/** How many are looked at, at most. */
const LOOKED_AT = 64;

/** Bytes a second of late, or since the body began; null where nothing is to be said of it. What has come and is not read yet is not the sender's fault. */
function rateOf({ socket, receiving, receivingSince, receivedFrom, windowSince, bytesRead }: Connection, now: number): number | null {
    const isLately = now - windowSince >= JUDGED_AFTER;
    const passed = now - (isLately ? windowSince : receivingSince);
    const came = socket.bytesRead - (isLately ? Math.max(bytesRead, receivedFrom) : receivedFrom);
    return passed < JUDGED_AFTER || receiving?.readableLength !== 0 ? null : (came * 1_000) / passed;
}

/**
 * The one of which the least comes, of those whose bodies have been coming for the longest; none of which much comes.
 *
 * @param receiving Each of which much comes is put behind the others, so that it stands before none the next time. Those whose body is there are taken out.
 */
export function slowestOf(receiving: Set<Connection>, { minRate }: Limits, now: number): Connection | undefined {
    let slowest: Connection | undefined;
    let least = QUICK * minRate;
    let looks = 0;
    for (const connection of receiving) {
        looks += 1;
        if (looks > LOOKED_AT) {
            break;
        }

        const rate = rateOf(connection, now);
        if (connection.receiving === null || connection.receiving.complete) {
            receiving.delete(connection);
        } else if (rate === null || rate >= QUICK * minRate) {
            receiving.delete(connection);
            receiving.add(connection);
        } else if (rate < least) {
            [slowest, least] = [connection, rate];
        }
    }
    return slowest;
}

function answerIsOver({ reader }: Connection, { answerTimeout }: Limits, now: number): boolean {
    return reader.pausedFor(now) >= answerTimeout;
}

/** The one with the most requests behind the one that is handled, if any has some. */
export function greediestOf(connections: Iterable<Connection>): Connection | undefined {
    let greediest: Connection | undefined;
    for (const connection of connections) {
        greediest = connection.begin.length > (greediest?.begin.length ?? 0) ? connection : greediest;
    }
    return greediest;
}

/** Under TLS Node keeps here the socket that was accepted, whose timers run with those of the other. */
type Wrapping = Socket & { readonly _parent?: Socket | null };

/**
 * What the sockets of a TLS connection have in common. With our own address: a client may connect to two of them from the same port. Over a Unix
 * socket there are no addresses: the socket that was accepted.
 */
export function portsOf(socket: Socket): string | Socket {
    const { remoteAddress, remotePort, localAddress, localPort } = socket;
    return remotePort === undefined
        ? ((socket as Wrapping)._parent ?? socket)
        : `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
