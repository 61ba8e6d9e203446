import { pipeline, Readable, type Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import type { Request, ResponseObject, ResponseToolkit } from '@hapi/hapi';
import { qualitiesOf } from './index-query.ts';
import { LINES_TYPE } from './row-forms.ts';

type Compress = (options?: zlib.ZlibOptions) => Transform;

interface Compression {
    readonly encoding: string;
    readonly compress: Compress;
}

/** Node has it from 22.15 on. */
const { createZstdCompress } = zlib as { readonly createZstdCompress?: Compress };

/** What answers are compressed with, what is best first. */
const COMPRESSIONS: readonly Compression[] = [
    ...(createZstdCompress === undefined ? [] : [{ encoding: 'zstd', compress: createZstdCompress }]),
    { encoding: 'gzip', compress: zlib.createGzip },
];

/** Pieces of an answer: all of them, or as they are made. */
export type AnswerBody = readonly (string | Uint8Array)[] | AsyncIterable<string | Uint8Array>;

/**
 * A text that is there, or as it is made, compressed as the client wants it. What the server compresses by itself it does: gzip of the types on its
 * list, on which lines of JSON are not.
 */
export function answered(request: Request, h: ResponseToolkit, body: AnswerBody, type: string): ResponseObject {
    const compression = compressionOf(request);
    const whole = wholeOf(body);
    if (compression === undefined || (compression.encoding === 'gzip' && type !== LINES_TYPE) || isShort(request, whole)) {
        // Of nothing hapi makes a 204, and of the text that an answer to HEAD does not have nobody knows the length.
        const response = h.response(whole === null || whole.length === 0 ? streamOf(body) : whole).type(type);
        // hapi says it of what it compresses, and so not of short texts.
        return request.server.settings.compression ? response.vary('accept-encoding') : response;
    }

    const { encoding, compress } = compression;
    const settings = request.route.settings as { readonly compression?: Readonly<Record<string, zlib.ZlibOptions>> };
    const compressed = compress(settings.compression?.[encoding]);
    // A failure of the reading destroys the compressor with it, which breaks the connection.
    pipeline(streamOf(body), compressed, () => {});
    return h.response(compressed).type(type).header('content-encoding', encoding).vary('accept-encoding');
}

function streamOf(body: AnswerBody): Readable {
    return Readable.from(body, { objectMode: false });
}

/** Not as a stream, which takes longer than the text itself to be sent. */
function wholeOf(body: AnswerBody): string | Buffer | null {
    if (!Array.isArray(body)) {
        return null;
    }
    const pieces = body as readonly (string | Uint8Array)[];
    return pieces.every((piece) => typeof piece === 'string')
        ? pieces.join('')
        : Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece)));
}

/** Whether it is not worth it to compress a text, as hapi says of its own; of an answer to HEAD nobody knows. */
function isShort({ server, method }: Request, whole: string | Buffer | null): boolean {
    const { compression } = server.settings;
    const { minBytes = 0 } = typeof compression === 'object' ? compression : {};
    return method !== 'head' && whole !== null && Buffer.byteLength(whole) < minBytes;
}

function compressionOf({ server, headers }: Request): Compression | undefined {
    const wanted = new Map(server.settings.compression ? qualitiesOf(headers['accept-encoding']) : []);
    const quality = ({ encoding }: Compression): number => wanted.get(encoding) ?? 0;
    return COMPRESSIONS.filter((one) => quality(one) > 0).toSorted((one, other) => quality(other) - quality(one))[0];
}
