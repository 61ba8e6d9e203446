import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A receiver in a process of its own, without any code of scanwire. Writes each message as a line of JSON into a file and
 * answers after a while. Arguments: file, milliseconds to wait, port (0: any). Prints its port.
 */
const [file = '', delay = '0', port = '0'] = process.argv.slice(2);

const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
        const body = Buffer.concat(chunks).toString('base64');
        appendFileSync(file, `${JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body })}\n`);
        setTimeout(() => response.writeHead(204).end(), Number(delay));
    });
});

server.listen(Number(port), '127.0.0.1', () => {
    process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
