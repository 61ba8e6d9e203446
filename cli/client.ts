import { type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import type { Socket } from 'node:net';
import { ScanwireError, type ScanwireErrorCode } from '../lib/errors.ts';
import { type Endpoint, endpoints, type Input, type OperationName, type Output } from '../plugins/admin-console/operations.ts';
import { readAll } from './read-all.ts';

/** Longest answer that is taken. */
const MAX_ANSWER = 256 * 1024 * 1024;

/**
 * Asks a running server to perform the operation.
 *
 * @param server A connection to it, which is used up.
 * @throws ScanwireError as the operation would in this process, `UNAVAILABLE` when the server breaks off.
 */
export async function ask<Name extends OperationName>(server: Socket, name: Name, input: Input<Name>): Promise<Output<Name>> {
    const { path, body } = split(endpoints[name], input);
    const { status, answer } = await exchange(server, endpoints[name].method, path, body);
    if (status < 300) {
        return answer as Output<Name>;
    }

    const { code, field, message } = (answer as { error?: { code?: string; field?: string; message?: string } }).error ?? {};
    throw new ScanwireError(
        (code ?? 'UNAVAILABLE') as ScanwireErrorCode,
        message ?? `The server answered ${status}`,
        field === undefined ? {} : { field },
    );
}

type Body = AsyncIterable<Uint8Array> | string | null;

/** Fields named in the path go there, a stream becomes the body, the others go where the method has them. */
function split({ method, path, streamed }: Endpoint, input: object): { readonly path: string; readonly body: Body } {
    const { source, ...fields } = input as Record<string, unknown> & { readonly source?: AsyncIterable<Uint8Array> };
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
        const value = fields[name];
        delete fields[name];
        return encodeURIComponent(String(value));
    });
    if (streamed !== true && method !== 'GET' && method !== 'DELETE') {
        return { path: filled, body: JSON.stringify(fields) };
    }

    const pairs = Object.entries(fields).filter(([, value]) => value !== undefined);
    const query = new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, String(value)])).toString();
    return { path: query === '' ? filled : `${filled}?${query}`, body: source ?? null };
}

function headersOf(body: Body): OutgoingHttpHeaders {
    if (body === null) {
        return {};
    }

    return typeof body === 'string'
        ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
        : { 'content-type': 'application/octet-stream' };
}

function exchange(
    server: Socket,
    method: string,
    path: string,
    body: Body,
): Promise<{ readonly status: number; readonly answer: unknown }> {
    return new Promise((resolve, reject) => {
        const outgoing = request({ createConnection: () => server, method, path, headers: headersOf(body) });
        outgoing.on('error', (cause) => reject(new ScanwireError('UNAVAILABLE', 'The server broke off', { cause })));
        outgoing.on('response', (incoming) => {
            answerOf(incoming).then((answer) => {
                resolve({ status: incoming.statusCode ?? 0, answer });
                outgoing.destroy();
            }, reject);
        });

        if (body === null || typeof body === 'string') {
            outgoing.end(body ?? undefined);
        } else {
            void send(body, outgoing, reject);
        }
    });
}

/** Sends a stream. What cannot be read here is this side's failure, and the server must not take the part that it got for all. */
async function send(source: AsyncIterable<Uint8Array>, outgoing: ClientRequest, onError: (error: Error) => void): Promise<void> {
    // Loaded here: most requests are short.
    const { Readable } = await import('node:stream');
    const body = Readable.from(source, { objectMode: false });
    body.on('error', (error) => {
        outgoing.destroy();
        onError(error);
    });
    outgoing.on('close', () => body.destroy());
    body.pipe(outgoing);
}

async function answerOf(incoming: IncomingMessage): Promise<unknown> {
    const bytes = await readAll(incoming, MAX_ANSWER);
    if (bytes === null) {
        throw new ScanwireError('UNAVAILABLE', 'The answer of the server is too long');
    }

    try {
        return JSON.parse(bytes.toString()) ?? {};
    } catch {
        throw new ScanwireError('UNAVAILABLE', 'The server answered with something else than JSON');
    }
}
