import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ScanwireError } from '../../lib/scanwire-error.ts';
import { type Verification, verifyMessage } from './verify-message.ts';

/** A message as it came in. */
export interface Received {
    readonly receivedAt: Date;
    /** The event kind, null when no header names it. */
    readonly event: string | null;
    readonly verification: Verification;
    /** The body as text. */
    readonly body: string;
}

export interface ReceiverOptions {
    readonly host: string;
    /** 0 for a free one. */
    readonly port: number;
    /** Asked for at each message. */
    readonly secret: () => string;
    readonly onMessage: (message: Received) => void;
}

export interface Receiver {
    readonly port: number;
    readonly url: string;
    close(): Promise<void>;
}

const MAX_BODY = 4 * 1024 * 1024;

/**
 * A receiver of messages: verifies each and answers 204, or 401 to one that is not verified.
 *
 * @throws ScanwireError `CONFLICT` when the port is in use, `MISCONFIGURED` when it cannot be listened on.
 */
export async function startReceiver({ host, port, secret, onMessage }: ReceiverOptions): Promise<Receiver> {
    const server = createServer((request, response) => {
        answer(request, response).catch(() => response.destroy());
    });

    async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
        if (request.method !== 'POST') {
            response.writeHead(405, { allow: 'POST' }).end();
            return;
        }

        const body = await bodyOf(request);
        if (body === null) {
            response.writeHead(413, { connection: 'close' }).end();
            return;
        }

        const receivedAt = new Date();
        const verification = verifyMessage(request.headers, body, secret(), receivedAt);
        response.writeHead(verification.ok ? 204 : 401).end();
        onMessage({ receivedAt, event: eventOf(request), verification, body: body.toString() });
    }

    server.listen(port, host);
    try {
        await once(server, 'listening');
    } catch (error) {
        throw cannotListen(error, host, port);
    }

    const { port: actual } = server.address() as AddressInfo;
    return {
        port: actual,
        url: `http://${host.includes(':') ? `[${host}]` : host}:${actual}/`,
        async close() {
            server.close();
            server.closeAllConnections();
            await once(server, 'close');
        },
    };
}

/** What to tell a person whose server cannot listen. */
export function cannotListen(error: unknown, host: string, port: number): unknown {
    const reasons: Readonly<Record<string, string>> = {
        EADDRINUSE: 'is in use: choose another with --port',
        EACCES: 'needs rights that this user does not have: choose one above 1023 with --port',
        EADDRNOTAVAIL: 'cannot be listened on: this machine does not have that address',
        ENOTFOUND: 'cannot be listened on: the host name is unknown',
    };
    const { code = '' } = error as NodeJS.ErrnoException;
    const reason = reasons[code];
    return reason === undefined
        ? error
        : new ScanwireError('CONFLICT', `Port ${port} of ${host} ${reason}`, { field: 'port', cause: error });
}

/** Null when it is too long. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | null> {
    const parts: Buffer[] = [];
    let length = 0;
    for await (const part of request as AsyncIterable<Buffer>) {
        length += part.byteLength;
        if (length > MAX_BODY) {
            return null;
        }

        parts.push(part);
    }

    return Buffer.concat(parts);
}

function eventOf({ headers }: IncomingMessage): string | null {
    const [, event] = Object.entries(headers).find(([name]) => /^x-[a-z0-9-]+-event$/.test(name)) ?? [];
    return typeof event === 'string' ? event : null;
}
