import { type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { ScanwireError, type ScanwireErrorCode } from '../lib/errors.ts';
import type { Operation } from './operations.ts';
import type { RunningServer } from './server-socket.ts';

/** Longest answer that is taken. */
const MAX_ANSWER = 256 * 1024 * 1024;

/**
 * Asks a running server to perform the operation.
 *
 * @throws ScanwireError as the operation would in this process, `UNAVAILABLE` when the server breaks off.
 */
export async function ask<Input extends object, Output>(
    { socket }: RunningServer,
    operation: Operation<Input, Output>,
    input: Input,
): Promise<Output> {
    const { path, query, body } = split(operation, input);
    const { status, text } = await exchange(socket, operation.method, query === '' ? path : `${path}?${query}`, body);
    const answer = parse(text);
    if (status < 300) {
        return answer as Output;
    }

    const { code, field, message } = (answer as { error?: { code?: string; field?: string; message?: string } }).error ?? {};
    throw new ScanwireError(
        (code ?? 'UNAVAILABLE') as ScanwireErrorCode,
        message ?? `The server answered ${status}`,
        field === undefined ? {} : { field },
    );
}

interface Parts {
    readonly path: string;
    readonly query: string;
    readonly body: Readable | string | null;
}

/** Fields named in the path go there, a stream becomes the body, the others go where the method has them. */
function split({ method, path, streamed }: Operation<never, unknown>, input: object): Parts {
    const fields = new Map(Object.entries(input).filter(([, value]) => value !== undefined));
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
        const value = fields.get(name);
        fields.delete(name);
        return encodeURIComponent(String(value));
    });

    if (streamed === true) {
        const source = fields.get('source') as AsyncIterable<Uint8Array>;
        fields.delete('source');
        return { path: filled, query: queryOf(fields), body: Readable.from(source, { objectMode: false }) };
    }

    return method === 'GET' || method === 'DELETE'
        ? { path: filled, query: queryOf(fields), body: null }
        : { path: filled, query: '', body: JSON.stringify(Object.fromEntries(fields)) };
}

function queryOf(fields: ReadonlyMap<string, unknown>): string {
    return new URLSearchParams(Object.fromEntries([...fields].map(([name, value]) => [name, String(value)]))).toString();
}

function exchange(
    socketPath: string,
    method: string,
    path: string,
    body: Readable | string | null,
): Promise<{ readonly status: number; readonly text: string }> {
    return new Promise((resolve, reject) => {
        const headers = typeof body === 'string' ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) } : {};
        const outgoing = request({ socketPath, method, path, headers, agent: false });
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
