import net from 'node:net';
import tls from 'node:tls';

export interface Endpoint {
    readonly port: number;
    /** All that came in, of all connections. */
    received(): string;
    /** Open connections. */
    open(): number;
    close(): Promise<void>;
}

/** What to do with a connection; `reset` breaks it off the hard way. */
export type Serve = (socket: net.Socket, reset: () => void) => void;

/** A server on a free loopback port that does as told with every connection; with TLS where there are options for it. */
export async function endpoint(serve: Serve, secure?: tls.TlsOptions): Promise<Endpoint> {
    const sockets = new Map<number | undefined, net.Socket>();
    let received = '';
    const accept = (socket: net.Socket): void => {
        socket.on('error', () => {});
        socket.on('data', (chunk) => {
            received += chunk.toString('latin1');
        });
        serve(socket, () => sockets.get(socket.remotePort)?.resetAndDestroy());
    };
    const server = secure === undefined ? net.createServer(accept) : tls.createServer(secure, accept);
    server.on('tlsClientError', () => {});
    server.on('connection', (socket: net.Socket) => {
        const { remotePort } = socket;
        sockets.set(remotePort, socket);
        socket.on('error', () => {}).on('close', () => sockets.delete(remotePort));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

    return {
        port: (server.address() as net.AddressInfo).port,
        received: () => received,
        open: () => sockets.size,
        async close() {
            for (const socket of sockets.values()) {
                socket.destroy();
            }

            await new Promise((resolve) => server.close(resolve));
        },
    };
}
