/** Files of a package that everybody may have: read and compressed once, however many ask for them. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Lifecycle, Request } from '@hapi/hapi';
import { MAX_STREAMS, streamsOf } from '../open-streams.ts';

/** Bytes that wait for one reader. */
const PIECE = 65_536;

/** All files have their places in common, beside those of the data: nobody shows who he is to read them. */
const FILES = {};

interface Encoded {
    readonly bytes: Buffer;
    readonly tag: string;
}

interface Kept {
    readonly plain: Encoded;
    readonly compressed: Encoded;
}

/** Answers with a file. Who has it already gets it only once it has changed; 503 while too many read files. */
export function fileHandler(path: string): Lifecycle.Method {
    const kept = keptFile(path);
    const streams = streamsOf(FILES, MAX_STREAMS, { what: 'files' });
    return async (request, h) => {
        const file = await kept();
        const isCompressed = takesGzip(request);
        const { bytes, tag } = isCompressed ? file.compressed : file.plain;
        const known = h.entity({ etag: tag, vary: false });
        if (known !== undefined) {
            return known.vary('accept-encoding');
        }

        streams.begin(request);
        const response = h
            .response(Readable.from(piecesOf(bytes), { objectMode: false }))
            .bytes(bytes.length)
            .vary('accept-encoding');
        return isCompressed ? response.header('content-encoding', 'gzip') : response;
    };
}

/** Read when it is asked for first, as most servers show the page to hardly anybody. */
function keptFile(path: string): () => Promise<Kept> {
    let kept: Promise<Kept> | undefined;
    return async () => {
        kept ??= readKept(path);
        try {
            return await kept;
        } catch (error) {
            kept = undefined;
            throw error;
        }
    };
}

async function readKept(path: string): Promise<Kept> {
    const plain = await readFile(path);
    const tag = createHash('sha256').update(plain).digest('base64url');
    return { plain: { bytes: plain, tag }, compressed: { bytes: await promisify(gzip)(plain), tag: `${tag}-gzip` } };
}

/** hapi knows what the client prefers of what hapi can make. */
function takesGzip({ server, info }: Request): boolean {
    return Boolean(server.settings.compression) && info.acceptEncoding === 'gzip';
}

function* piecesOf(bytes: Buffer): Generator<Buffer> {
    for (let at = 0; at < bytes.length; at += PIECE) {
        yield bytes.subarray(at, at + PIECE);
    }
}
