import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { withBrackets } from '../lib/addresses.ts';
import { ScanwireError } from '../lib/errors.ts';
import { messageKind, verify } from '../lib/verify/verify.ts';
import { listenError } from './output/errors.ts';
import { readAll } from './read-all.ts';

/** A message as it came in. */
export interface Received {
    readonly receivedAt: Date;
    /** The event kind, null when no header names it. */
    readonly event: string | null;
    readonly verification: Verification;
    /** The body as text; null when it is too long to be read. */
    readonly body: string | null;
}

/** How a receiver listens and verifies. */
export interface ReceiverOptions {
    readonly host: string;
    /** 0 for a free one. */
    readonly port: number;
    /** Asked for at each message; empty while there is none. */
    readonly secret: () => string;
    readonly onMessage: (message: Received) => void;
}

/** A receiver that listens. */
export interface Receiver {
    readonly port: number;
    readonly url: string;
    close(): Promise<void>;
}

const MAX_BODY_MIB = 4;

/**
 * The receiver of `scanwire listen` and of the demo: verifies each message and answers 204, 401 to one that is not verified, or 413 to one
 * of more than 4 MiB.
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

        const body = await readAll(request, MAX_BODY_MIB * 1024 * 1024);
        const [receivedAt, event] = [new Date(), messageKind(request.headers)];
        if (body === null) {
            response.writeHead(413, { connection: 'close' }).end();
            const verification = wrong(`The body is longer than ${MAX_BODY_MIB} MiB, and was not read`);
            onMessage({ receivedAt, event, verification, body });
            return;
        }

        const verification = verifyMessage(request.headers, body, secret(), receivedAt);
        response.writeHead(verification.ok ? 204 : 401).end();
        onMessage({ receivedAt, event, verification, body: body.toString() });
    }

    server.listen(port, host);
    try {
        await once(server, 'listening');
    } catch (error) {
        throw listenError(error, host, port);
    }

    const { port: actual } = server.address() as AddressInfo;
    return {
        port: actual,
        url: `http://${withBrackets(host)}:${actual}/`,
        async close() {
            server.close();
            server.closeAllConnections();
            await once(server, 'close');
        },
    };
}

/** What a message turned out to be. */
export interface Verification {
    readonly ok: boolean;
    /** The signature forms that were found right. */
    readonly forms: readonly string[];
    /** Why it is not verified, null when it is. */
    readonly reason: string | null;
}

/** What {@link verify} makes of a message, as it is shown. Every signature that the message carries must be right. */
export function verifyMessage(headers: IncomingHttpHeaders, body: Uint8Array, secret: string, now: Date): Verification {
    if (secret === '') {
        return wrong('There is no secret yet');
    }

    try {
        return { ok: true, forms: verify(body, headers, { secrets: [secret], clock: () => now }).forms, reason: null };
    } catch (error) {
        if (error instanceof ScanwireError && error.code === 'UNVERIFIED') {
            return wrong(error.message);
        }

        throw error;
    }
}

function wrong(reason: string): Verification {
    return { ok: false, forms: [], reason };
}
