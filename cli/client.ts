import { type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { Readable } from 'node:stream';
import { ScanwireError, type ScanwireErrorCode } from '../lib/errors.ts';
import { type Endpoint, endpoints, type Input, type OperationName, type Output } from '../plugins/admin-console/operations.ts';
import type { RunningServer } from './server-socket.ts';

/** Longest answer that is taken. */
const MAX_ANSWER = 256 * 1024 * 1024;

/**
 * Asks a running server to perform the operation.
 *
 * @throws ScanwireError as the operation would in this process, `UNAVAILABLE` when the server breaks off.
 */
export async function ask<Name extends OperationName>({ socket }: RunningServer, name: Name, input: Input<Name>): Promise<Output<Name>> {
    const { path, body } = split(endpoints[name], input);
    const { status, text } = await exchange(socket, endpoints[name].method, path, body);
    const answer = parse(text);
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

type Body = Readable | string | null;

/** Fields named in the path go there, a stream becomes the body, the others go where the method has them. */
function split({ method, path, streamed }: Endpoint, input: object): { readonly path: string; readonly body: Body } {
    const fields = new Map<string, unknown>(Object.entries(input).filter(([, value]) => value !== undefined));
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
        const value = fields.get(name);
        fields.delete(name);
        return encodeURIComponent(String(value));
    });

    if (streamed === true) {
        const source = fields.get('source') as AsyncIterable<Uint8Array>;
        fields.delete('source');
        return { path: withQuery(filled, fields), body: Readable.from(source, { objectMode: false }) };
    }

    return method === 'GET' || method === 'DELETE'
        ? { path: withQuery(filled, fields), body: null }
        : { path: filled, body: JSON.stringify(Object.fromEntries(fields)) };
}

function withQuery(path: string, fields: ReadonlyMap<string, unknown>): string {
    const query = new URLSearchParams(Object.fromEntries([...fields].map(([name, value]) => [name, String(value)]))).toString();
    return query === '' ? path : `${path}?${query}`;
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
    socketPath: string,
    method: string,
    path: string,
    body: Body,
): Promise<{ readonly status: number; readonly text: string }> {
    return new Promise((resolve, reject) => {
        const outgoing = request({ socketPath, method, path, headers: headersOf(body), agent: false });
        outgoing.on('error', (cause) => reject(new ScanwireError('UNAVAILABLE', 'The server broke off', { cause })));
        outgoing.on('response', (incoming) => {
            textOf(incoming).then((text) => {
                resolve({ status: incoming.statusCode ?? 0, text });
                outgoing.destroy();
            }, reject);
        });

        if (body instanceof Readable) {
            // What cannot be read here is this side's failure, and the server must not take the part that it got for all.
            body.on('error', (error) => {
                outgoing.destroy();
                reject(error);
            });
            outgoing.on('close', () => body.destroy());
            body.pipe(outgoing);
        } else {
            outgoing.end(body ?? undefined);
        }
    });
}

async function textOf(incoming: IncomingMessage): Promise<string> {
    const parts: Buffer[] = [];
    let length = 0;
    for await (const part of incoming as AsyncIterable<Buffer>) {
        length += part.byteLength;
        if (length > MAX_ANSWER) {
            throw new ScanwireError('UNAVAILABLE', 'The answer of the server is too long');
        }

        parts.push(part);
    }

    return Buffer.concat(parts).toString();
}

function parse(text: string): unknown {
    try {
        return JSON.parse(text) ?? {};
    } catch {
        throw new ScanwireError('UNAVAILABLE', 'The server answered with something else than JSON');
    }
}
