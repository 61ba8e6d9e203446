import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ScanwireError } from '../lib/errors.ts';
import { readAll } from './read-all.ts';

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
 * The receiver of `scanwire listen` and of the demo: verifies each message and answers 204, or 401 to one that is not verified.
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

        const body = await readAll(request, MAX_BODY);
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

function eventOf({ headers }: IncomingMessage): string | null {
    const [, event] = Object.entries(headers).find(([name]) => /^x-[a-z0-9-]+-event$/.test(name)) ?? [];
    return typeof event === 'string' ? event : null;
}

/** What a message turned out to be. */
export interface Verification {
    readonly ok: boolean;
    /** The signature forms that were found right. */
    readonly forms: readonly string[];
    /** Why it is not verified, null when it is. */
    readonly reason: string | null;
}

/** How far the clocks of sender and receiver may differ, in seconds; Standard Webhooks asks for five minutes. */
const TOLERANCE = 300;

/**
 * Verifies a message as any receiver would, from its bytes, its headers and the secret alone; on purpose nothing here is shared
 * with the code that signs. Every signature that the message carries must be right, and there must be one.
 */
export function verifyMessage(headers: IncomingHttpHeaders, body: Uint8Array, secret: string, now: Date): Verification {
    const signatures = Object.entries(headers).filter(([name]) => /^x-[a-z0-9-]+-signature(-base64|-hex|-sha256)?$/.test(name));
    const forms: string[] = [];
    for (const [name, value] of signatures) {
        const form = bodyForm(String(value), body, secret);
        if (form === null) {
            return wrong(`${name} does not fit the body and the secret`);
        }

        forms.push(form);
    }

    if (headers['webhook-signature'] !== undefined) {
        const reason = standardProblem(headers, body, secret, now);
        if (reason !== null) {
            return wrong(reason);
        }

        forms.push('standard-webhooks');
    }

    return forms.length === 0 ? wrong('there is no signature') : { ok: true, forms, reason: null };
}

function wrong(reason: string): Verification {
    return { ok: false, forms: [], reason };
}

/** The form in which the HMAC of the body is written, null when it is not its HMAC. */
function bodyForm(text: string, body: Uint8Array, secret: string): string | null {
    const digest = createHmac('sha256', Buffer.from(secret, 'utf8')).update(body).digest();
    const expected = {
        base64: digest.toString('base64'),
        hex: digest.toString('hex'),
        'sha256-hex': `sha256=${digest.toString('hex')}`,
    };
    return Object.entries(expected).find(([, signature]) => equal(signature, text))?.[0] ?? null;
}

function standardProblem(headers: IncomingHttpHeaders, body: Uint8Array, secret: string, now: Date): string | null {
    const id = String(headers['webhook-id'] ?? '');
    const timestamp = String(headers['webhook-timestamp'] ?? '');
    if (!/^\d+$/.test(timestamp) || Math.abs(now.getTime() / 1000 - Number(timestamp)) > TOLERANCE) {
        return 'webhook-timestamp is missing or more than five minutes off';
    }

    const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : Buffer.from(secret, 'utf8');
    const expected = `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
    const signatures = String(headers['webhook-signature']).split(' ');
    return signatures.some((signature) => equal(signature, expected)) ? null : 'webhook-signature does not fit the body and the secret';
}

function equal(one: string, other: string): boolean {
    const [a, b] = [Buffer.from(one), Buffer.from(other)];
    return a.byteLength === b.byteLength && timingSafeEqual(a, b);
}
