import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import * as Boom from '@hapi/boom';
import { unpacked } from '../../lib/unpacked.ts';

/** How much of a batch is read, and for how long. */
export interface BatchLimits {
    readonly maxBytes: number;
    readonly maxDecodedBytes: number;
    /** Ends the reading, also that of what was received already. */
    readonly signal: AbortSignal;
}

/**
 * The bytes of a batch, decompressed when its `Content-Encoding` says gzip, and when they are a gzip file; never more than the
 * limits allow: neither a request without a length nor a gzip bomb gets further.
 *
 * @throws Boom 413 beyond a limit, 415 for another encoding, 400 for broken gzip. A failure of the request itself is thrown as it is.
 */
export function batchBytes(payload: Readable, encoding: string | undefined, limits: BatchLimits): AsyncIterable<Uint8Array> {
    // Destroying a request closes its connection, and with it the way of the answer.
    const { maxBytes, maxDecodedBytes, signal } = limits;
    const received = atMost(maxBytes, payload.iterator({ destroyOnReturn: false }), `larger than ${maxBytes} bytes`, signal);
    const decoded = (bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> =>
        atMost(maxDecodedBytes, bytes, `larger than ${maxDecodedBytes} bytes after decompression`, signal);
    switch (encoding?.trim().toLowerCase() ?? '') {
        case '':
        case 'identity':
            return decoded(unpacked(received));
        case 'gzip':
        case 'x-gzip':
            return decoded(unpacked(decoded(gunzipped(received))));
        default:
            throw Boom.unsupportedMediaType('Unknown Content-Encoding: a batch is sent as it is or as gzip');
    }
}

async function* atMost(limit: number, source: AsyncIterable<Uint8Array>, excess: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    let seen = 0;
    for await (const chunk of source) {
        signal.throwIfAborted();
        seen += chunk.length;
        if (seen > limit) {
            throw Boom.entityTooLarge(`The batch is ${excess}: send it in parts`);
        }

        yield chunk;
    }
}

async function* gunzipped(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const gunzip = createGunzip();
    const compressed = Readable.from(source);
    compressed.on('error', (error) => gunzip.destroy(error));
    try {
        yield* compressed.pipe(gunzip);
    } catch (error) {
        const code = (error as NodeJS.ErrnoException).code ?? '';
        throw /^Z_/.test(code) ? Boom.badRequest('The batch is not valid gzip, or it is cut short') : error;
    } finally {
        compressed.destroy();
    }
}
