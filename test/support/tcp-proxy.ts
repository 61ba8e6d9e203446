import net from 'node:net';

/** A proxy between a client and a server, whose connections can be made to fail as networks do. */
export interface TcpProxy {
    readonly port: number;
    /** Connections that are open now. */
    connections(): number;
    /** From now on nothing passes over the connections that are open: each side sees a connection on which nothing comes. */
    silence(): void;
    /** The same for one connection: that over which a client sends next what is looked for. It gets there, and is not answered. */
    silenceAt(sent: (bytes: Buffer) => boolean): void;
    /** Holds what the server sends over one connection: that over which so many bytes come first behind a chunk with a marker in it. */
    holdBehind(marker: string, bytes: number): Promise<Held>;
    /** From now on nothing passes over new connections either, until `recover`. */
    silenceAll(): void;
    /** From now on new connections pass all; those that were silenced stay so. */
    recover(): void;
    /** Ends the connections that are open for the server only: the client sees a connection on which nothing comes. */
    halve(): void;
    /** Breaks the connections that are open. */
    reset(): void;
    close(): Promise<void>;
}

/** A connection in the midst of an answer. */
export interface Held {
    /** That of the proxy at the server, by which the server knows the client. */
    readonly port: number;
    /** Lets the rest through. */
    goOn(): void;
    /** Lets nothing through any more: its client sees an answer that goes no further. */
    silence(): void;
}

/** Where a server listens. */
interface Address {
    readonly host: string;
    readonly port: number;
}

/** A proxy on a free loopback port to a server, or for each new connection to the one that is it then. */
export async function tcpProxy(server: Address | (() => Address)): Promise<TcpProxy> {
    const pairs = new Set<readonly [net.Socket, net.Socket]>();
    const halved = new WeakSet<net.Socket>();
    let silent = false;
    let silences: ((bytes: Buffer) => boolean) | null = null;
    let holding: { readonly marker: string; readonly bytes: number; held(connection: Held): void } | null = null;

    function silencePair([client, upstream]: readonly [net.Socket, net.Socket]): void {
        for (const socket of [client, upstream]) {
            socket.unpipe();
            // what comes is taken, as by a network that loses it behind the last one that acknowledges
            socket.on('data', () => undefined);
            socket.resume();
        }
    }

    /** Watches what comes from the server, for as long as somebody waits for a connection to hold. */
    function holds(pair: readonly [net.Socket, net.Socket]): void {
        const [client, upstream] = pair;
        let seen: number | null = null;
        upstream.on('data', (chunk) => {
            seen = holding !== null && (seen !== null || chunk.includes(holding.marker)) ? (seen ?? 0) + chunk.length : null;
            if (holding === null || seen === null || seen < holding.bytes) {
                return;
            }
            const { held } = holding;
            holding = null;
            upstream.unpipe(client);
            upstream.pause();
            held({
                port: upstream.localPort as number,
                goOn: () => void upstream.pipe(client),
                silence: () => silencePair(pair),
            });
        });
    }

    const listener = net.createServer((client) => {
        const pair = [client, net.connect(typeof server === 'function' ? server() : server)] as const;
        pairs.add(pair);
        for (const [socket, other] of [pair, pair.toReversed()] as [net.Socket, net.Socket][]) {
            socket.on('error', () => halved.has(socket) || other.destroy());
            socket.on('close', () => {
                if (!halved.has(socket)) {
                    pairs.delete(pair);
                    other.destroy();
                }
            });
            socket.pipe(other);
        }
        client.on('data', (bytes) => {
            if (silences?.(bytes) === true) {
                silences = null;
                silencePair(pair);
            }
        });
        holds(pair);
        if (silent) {
            silencePair(pair);
        }
    });
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));

    return {
        port: (listener.address() as net.AddressInfo).port,
        connections: () => pairs.size,
        silence: () => pairs.forEach(silencePair),
        silenceAt(sent) {
            silences = sent;
        },
        holdBehind: (marker, bytes) =>
            new Promise((held) => {
                holding = { marker, bytes, held };
            }),
        silenceAll() {
            silent = true;
            pairs.forEach(silencePair);
        },
        recover() {
            silent = false;
        },
        halve() {
            for (const pair of pairs) {
                silencePair(pair);
                halved.add(pair[1]);
                pair[1].destroy();
            }
        },
        reset() {
            for (const [client, upstream] of pairs) {
                client.resetAndDestroy();
                upstream.resetAndDestroy();
            }
        },
        close() {
            const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
            for (const [client] of pairs) {
                client.destroy();
            }
            return closed;
        },
    };
}
