import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A clock that all processes of this machine share, in microseconds. */
export function now(): number {
    return Number(process.hrtime.bigint() / 1000n);
}

/** Listens on a free port of 127.0.0.1 and prints it. */
export function serve(server: Server): void {
    server.keepAliveTimeout = 60_000;
    server.listen(0, '127.0.0.1', () => {
        process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
    });
}

export function textOf(request: IncomingMessage): Promise<string> {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    return new Promise((resolve, reject) => {
        request.on('end', () => resolve(Buffer.concat(chunks).toString()));
        request.on('error', reject);
    });
}
