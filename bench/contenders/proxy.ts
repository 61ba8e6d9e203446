import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { serve } from './http.ts';

/** A proxy that opens a tunnel (CONNECT) to whatever address it is asked for. */
const server = createServer((_, response) => response.writeHead(405).end());
server.on('connect', ({ url = '' }, client: Socket) => {
    const { hostname, port } = new URL(`http://${url}`);
    const target = connect(Number(port), hostname, () => {
        client.write('HTTP/1.1 200 Connection established\r\n\r\n');
        client.pipe(target).pipe(client);
    });
    for (const [one, other] of [
        [client, target],
        [target, client],
    ] as const) {
        one.setNoDelay();
        one.on('error', () => other.destroy());
    }
});
serve(server);
