import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import type { Socket } from 'node:net';
import { ScanwireError, type ScanwireErrorCode } from '../lib/errors.ts';
import type { ImportProgress } from '../lib/inventory/store.ts';
import {
    contentDigest,
    type DownloadName,
    type Endpoint,
    endpoints,
    type ImportedScan,
    type Input,
    type OperationName,
    type Output,
    PROGRESS_TYPE,
} from '../plugins/admin-console/operations.ts';
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
    const { onProgress, sha256 } = input as Pick<ImportedScan, 'onProgress' | 'sha256'>;
    return (await result(server, { method: endpoints[name].method, path, body, onProgress, sha256 })) as Output<Name>;
}

/** The same for what only the socket of a data folder offers. */
export async function post(server: Socket, path: string, fields: object): Promise<unknown> {
    return await result(server, { method: 'POST', path, body: JSON.stringify(fields) });
}

/** The same for what answers with a file: its bytes, as they come. Whoever takes no more of them lets the server stop. */
export async function download<Name extends DownloadName>(
    server: Socket,
    name: Name,
    input: Input<Name>,
): Promise<AsyncGenerator<Uint8Array, void, undefined>> {
    const { method } = endpoints[name];
    const outgoing = request({ createConnection: () => server, method, path: split(endpoints[name], input).path });
    outgoing.end();
    const [incoming] = (await once(outgoing, 'response').catch((cause: unknown) => {
        throw brokenOff(cause);
    })) as [IncomingMessage];
    // What goes wrong from now on is told by what is read.
    outgoing.on('error', () => {});
    const { statusCode = 0 } = incoming;
    if (statusCode >= 300) {
        throw refusal(statusCode, await answerOf(incoming));
    }

    return bytesOf(incoming);
}

async function* bytesOf(incoming: IncomingMessage): AsyncGenerator<Uint8Array, void, undefined> {
    try {
        yield* incoming as AsyncIterable<Uint8Array>;
    } catch (cause) {
        throw brokenOff(cause);
    } finally {
        incoming.destroy();
    }
}

async function result(server: Socket, asked: OperationRequest): Promise<unknown> {
    const { status, answer } = await exchange(server, asked);
    if (status < 300) {
        return answer;
    }

    throw refusal(status, answer);
}

function refusal(status: number, answer: unknown): ScanwireError {
    const { code, message, field, problems } = (answer as { error?: Partial<Omit<ScanwireError, 'code'>> & { code?: string } }).error ?? {};
    return new ScanwireError((code ?? 'UNAVAILABLE') as ScanwireErrorCode, message ?? `The server answered ${status}`, {
        ...(field !== undefined && { field }),
        ...(problems !== undefined && { problems }),
    });
}

type Body = AsyncIterable<Uint8Array> | string | null;

const DOTS = /^\.\.?$/;

/** A segment of dots is taken out of a path, however it is encoded; names are taken without the blanks around them. */
function segmentOf(value: string): string {
    return DOTS.test(value) ? `%20${value}` : encodeURIComponent(value);
}

/** Fields named in the path go there, a stream becomes the body, the others go where the method has them. */
function split({ method, path, streamed }: Endpoint, input: object): { readonly path: string; readonly body: Body } {
    const { source, onProgress: _, sha256: _digest, ...fields } = input as Record<string, unknown> & Partial<Pick<ImportedScan, 'source'>>;
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
        const value = fields[name];
        delete fields[name];
        return segmentOf(String(value));
    });
    if (streamed !== true && method !== 'GET' && method !== 'DELETE') {
        return { path: filled, body: JSON.stringify(fields) };
    }

    const pairs = Object.entries(fields).filter(([, value]) => value !== undefined);
    const query = new URLSearchParams(
        pairs.map(([name, value]): [string, string] => [name, value instanceof Date ? value.toISOString() : String(value)]),
    ).toString();
    return { path: query === '' ? filled : `${filled}?${query}`, body: source ?? null };
}

interface OperationRequest extends Partial<Pick<ImportedScan, 'onProgress' | 'sha256'>> {
    readonly method: string;
    readonly path: string;
    readonly body: Body;
}

function headersOf({ body, onProgress, sha256 }: OperationRequest): OutgoingHttpHeaders {
    if (body === null) {
        return {};
    }

    return typeof body === 'string'
        ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
        : {
              'content-type': 'application/octet-stream',
              ...(onProgress && { accept: PROGRESS_TYPE }),
              ...(sha256 !== undefined && { 'content-digest': contentDigest(sha256) }),
          };
}

interface Reply {
    readonly status: number;
    readonly answer: unknown;
}

function exchange(server: Socket, asked: OperationRequest): Promise<Reply> {
    const { method, path, body } = asked;
    return new Promise((resolve, reject) => {
        const outgoing = request({ createConnection: () => server, method, path, headers: headersOf(asked) });
        outgoing.on('error', (cause) => reject(brokenOff(cause)));
        outgoing.on('response', (incoming) => {
            replyOf(incoming, asked).then((reply) => {
                resolve(reply);
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

async function replyOf(incoming: IncomingMessage, { onProgress }: OperationRequest): Promise<Reply> {
    if (incoming.headers['content-type']?.startsWith(PROGRESS_TYPE) !== true) {
        return { status: incoming.statusCode ?? 0, answer: await answerOf(incoming) };
    }

    for await (const { progress, result, error } of linesOf(incoming)) {
        if (progress === undefined) {
            return error === undefined ? { status: 200, answer: result } : { status: 500, answer: { error } };
        }

        onProgress?.(progress);
    }

    throw brokenOff();
}

interface ProgressLine {
    readonly progress?: ImportProgress;
    readonly result?: object;
    readonly error?: object;
}

async function* linesOf(incoming: IncomingMessage): AsyncGenerator<ProgressLine, void, undefined> {
    const { createInterface } = await import('node:readline');
    const lines = createInterface({ input: incoming });
    // Who reads is told of a failure; behind the result nobody reads any more, and the connection is given up before the answer has ended.
    lines.on('error', () => {});
    try {
        for await (const line of lines) {
            yield JSON.parse(line) as ProgressLine;
        }
    } catch (cause) {
        throw brokenOff(cause);
    }
}

function brokenOff(cause?: unknown): ScanwireError {
    return new ScanwireError('UNAVAILABLE', 'The server broke off', { cause });
}

async function answerOf(incoming: IncomingMessage): Promise<unknown> {
    const bytes = await readAll(incoming, MAX_ANSWER).catch((cause: unknown) => {
        throw brokenOff(cause);
    });
    if (bytes === null) {
        throw new ScanwireError('UNAVAILABLE', 'The answer of the server is too long');
    }

    try {
        return JSON.parse(bytes.toString()) ?? {};
    } catch {
        throw new ScanwireError('UNAVAILABLE', 'The server answered with something else than JSON');
    }
}
