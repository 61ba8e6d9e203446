import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A receiver that answers 204 to everything and counts; prints its port, then answers `GET /count`. */
const seen = new Set<string>();
let count = 0;

const server = createServer((request, response) => {
    if (request.method === 'GET') {
        response.end(JSON.stringify({ count, distinct: seen.size }));
        return;
    }

    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
        count += 1;
        seen.add(/"investigationId":"([^"]+)"/.exec(Buffer.concat(chunks).toString())?.[1] ?? '');
        response.writeHead(204).end();
    });
});

server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
