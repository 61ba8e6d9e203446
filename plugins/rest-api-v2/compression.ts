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

/**
 * A text as it is made, compressed as the client wants it. What the server compresses by itself it does: gzip of the types on its list, on
 * which lines of JSON are not.
 */
export function streamed(
    request: Request,
    h: ResponseToolkit,
    body: Iterable<string> | AsyncIterable<string | Uint8Array>,
    type: string,
): ResponseObject {
    const stream = Readable.from(body, { objectMode: false });
    const compression = compressionOf(request);
    if (compression === undefined || (compression.encoding === 'gzip' && type !== LINES_TYPE)) {
        return h.response(stream).type(type);
    }

    const { encoding, compress } = compression;
    const settings = request.route.settings as { readonly compression?: Readonly<Record<string, zlib.ZlibOptions>> };
    const compressed = compress(settings.compression?.[encoding]);
    // A failure of the reading destroys the compressor with it, which breaks the connection.
    pipeline(stream, compressed, () => {});
    return h.response(compressed).type(type).header('content-encoding', encoding).vary('accept-encoding');
}

function compressionOf({ server, headers }: Request): Compression | undefined {
    const wanted = new Map(server.settings.compression ? qualitiesOf(headers['accept-encoding']) : []);
    const quality = ({ encoding }: Compression): number => wanted.get(encoding) ?? 0;
    return COMPRESSIONS.filter((one) => quality(one) > 0).toSorted((one, other) => quality(other) - quality(one))[0];
}
