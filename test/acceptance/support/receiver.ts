import { appendFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A receiver in a process of its own, without any code of scanwire. Writes each message as a line of JSON into a file and prints
 * its port. Arguments: file, how many messages to answer; the answers of all later ones wait for a line on standard input.
 */
const [file = '', count = ''] = process.argv.slice(2);
let left = Number(count);
const held: ServerResponse[] = [];

const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
        const body = Buffer.concat(chunks).toString('base64');
        appendFileSync(file, `${JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body })}\n`);
        left -= 1;
        if (left >= 0) {
            answer(response);
        } else {
            held.push(response);
        }
    });
});

process.stdin.once('data', () => {
    left = Number.POSITIVE_INFINITY;
    held.forEach(answer);
});

server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});

function answer(response: ServerResponse): void {
    response.writeHead(204).end();
}
