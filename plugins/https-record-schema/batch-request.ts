import { PassThrough, type Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import * as Boom from '@hapi/boom';
import type { Request, ResponseToolkit, RouteOptionsPayload } from '@hapi/hapi';
import Joi from 'joi';
import { unpacked } from '../../lib/gunzip.ts';
import { MEND_PROFILES, type MendProfile } from '../../lib/records/index.ts';
import { type StoreFailure, unavailable } from '../errors.ts';
import type { Settings } from './options.ts';

const TYPES = ['application/x-ndjson', 'application/jsonl', 'text/plain', 'application/octet-stream'];

/** A batch is read as it arrives. */
export function batchPayload(maxBytes: number): RouteOptionsPayload {
    return { output: 'stream', parse: false, maxBytes, allow: TYPES, failAction: refuse };
}

/** curl calls what it posts a form unless it is told otherwise, and hapi would not say what is wanted. */
function refuse(_request: Request, _h: ResponseToolkit, error: Error | undefined): never {
    throw Boom.isBoom(error, 415) ? Boom.unsupportedMediaType(`Content-Type must be one of ${TYPES.join(', ')}`) : error;
}

/** What a client asks for along with its batch. */
export interface BatchQuery {
    /** Which results are described. */
    readonly results: 'bad' | 'all';
    /** How records are mended first. */
    readonly mend?: MendProfile;
}

/** The query of both routes that take a batch. */
export const batchQuerySchema: Joi.ObjectSchema<BatchQuery> = Joi.object<BatchQuery, true>({
    results: Joi.string().valid('bad', 'all').default('bad'),
    mend: Joi.string().valid(...MEND_PROFILES),
});

/** Whether the client asks for JSON lines, and so for an answer that streams. */
export function acceptsLines({ headers }: Request): boolean {
    return /(?:^|[ ,])application\/x-ndjson(?:[ ;,]|$)/i.test(String(headers.accept ?? ''));
}

/**
 * The bytes of a batch, unpacked when they are gzip: its first bytes say so, whether or not the client calls that its
 * `Content-Encoding`. Gzip that cannot be read to its end fails as in {@link unpacked}.
 *
 * @param limits How much is read, all of it by default; the signal ends the reading, also that of what was received already.
 * @throws Boom 413 beyond a limit, 415 for another encoding. A failure of the request itself is thrown as it is.
 */
export function batchBytes(
    { payload, headers }: Request,
    limits: Partial<Pick<Settings, 'maxBytes' | 'maxDecodedBytes'>> & { readonly signal: AbortSignal },
): BatchBytes {
    if (!/^(?:|identity|gzip|x-gzip)$/i.test(String(headers['content-encoding'] ?? '').trim())) {
        throw Boom.unsupportedMediaType('Unknown Content-Encoding: a batch is sent as it is or as gzip');
    }

    const { maxBytes = Infinity, maxDecodedBytes = Infinity, signal } = limits;
    let bytes = 0;
    const sent = atMost(maxBytes, readAhead(payload as Readable), {
        excess: `larger than ${maxBytes} bytes`,
        signal,
        seen: (total) => (bytes = total),
    });
    const excess = `larger than ${maxDecodedBytes} bytes after decompression`;
    return { source: atMost(maxDecodedBytes, unpacked(sent, signal), { excess, signal }), received: () => bytes };
}

/** What a batch holds, and how many bytes of it were received so far: gzip makes little of much. */
export interface BatchBytes {
    readonly source: AsyncIterable<Uint8Array>;
    received(): number;
}

/** In bytes. */
const AHEAD = 1_048_576;

/** Receives before it is asked: that a client has left is noticed only when all that it sent before was taken from its connection. */
async function* readAhead(payload: Readable): AsyncGenerator<Uint8Array, void, undefined> {
    const ahead = new PassThrough({ highWaterMark: AHEAD });
    payload.once('error', (error) => ahead.destroy(error));
    payload.pipe(ahead);
    try {
        yield* ahead;
    } finally {
        // Destroying the request would close its connection, and with it the way of the answer.
        payload.unpipe(ahead);
    }
}

interface Bounds {
    readonly excess: string;
    readonly signal: AbortSignal;
    /** Hears how many bytes have come. */
    seen?(total: number): void;
}

async function* atMost(
    limit: number,
    source: AsyncIterable<Uint8Array>,
    { excess, signal, seen: tell }: Bounds,
): AsyncGenerator<Uint8Array, void, undefined> {
    let seen = 0;
    for await (const chunk of source) {
        signal.throwIfAborted();
        seen += chunk.length;
        tell?.(seen);
        if (seen > limit) {
            throw Boom.entityTooLarge(`The batch is ${excess}: send it in parts`);
        }

        yield chunk;
    }
}

/** What the client reads when reading or storing its batch failed; what the client has not done goes to the log. */
export function batchFailure(request: Request, error: unknown): Boom.Boom {
    if (Boom.isBoom(error)) {
        return error;
    }

    if ((request.payload as Readable).errored !== null || request.raw.res.closed) {
        return Boom.badRequest('The batch was not received to its end');
    }

    return unavailable(request, RECORDS_FAILED, error);
}

/** How every route reports that the store of records failed. */
export const RECORDS_FAILED: StoreFailure = {
    plugin: 'https-record-schema',
    message: 'The records cannot be stored or read now; try again later',
};

/** What `respond` resolves to. When it fails, the client learns why after all that it still sends was received. */
export async function orBatchFailure<T>(request: Request, respond: () => Promise<T>): Promise<T> {
    try {
        return await respond();
    } catch (error) {
        const failure = batchFailure(request, error);
        await restReceived(request);
        throw failure;
    }
}

const PATIENCE_MS = 2_000;

/**
 * Throws away what the client still sends, until it has sent everything or a while has passed. A connection that is closed while
 * bytes come in is reset, and the client may lose the answer that was on its way.
 */
export async function restReceived({ payload }: Request): Promise<void> {
    const received = payload as Readable;
    // A reader that is about to leave may hold the flow back until then.
    received.unpipe();
    received.on('data', () => {}).resume();
    await finished(received, { writable: false, signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => {});
}
