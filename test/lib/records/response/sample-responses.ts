import { readFileSync } from 'node:fs';
import zlib from 'node:zlib';
import type { HttpsRecord } from '../../../../lib/records/index.ts';
import { bytesOf } from './parsed-http.ts';

const PAGE =
    '<!doctype html><html><head><meta charset="utf-8"><title>A &amp; B</title></head><body><svg><title>x</title></svg></body></html>\n';

function answer(headers: string, body: string | Uint8Array): Buffer {
    return bytesOf([`HTTP/1.1 200 OK\r\nServer: test\r\nContent-Type: text/html; charset=utf-8\r\n${headers}\r\n\r\n`, body]);
}

function captured(): Buffer[] {
    const files = ['https.jsonl', 'servers.jsonl'].map((name) => readFileSync(`fixtures/records/${name}`, 'utf8'));
    const lines = files.flatMap((text) => text.trim().split('\n'));
    return lines.map((line) => Buffer.from((JSON.parse(line) as HttpsRecord).data, 'base64'));
}

/** Whole answers: the captures, and one of each form of body. */
export const sampleResponses: readonly Buffer[] = [
    ...captured(),
    answer(`Content-Length: ${PAGE.length}`, PAGE),
    answer(
        'Transfer-Encoding: chunked',
        `4\r\n${PAGE.slice(0, 4)}\r\n${(PAGE.length - 4).toString(16)};x=y\r\n${PAGE.slice(4)}\r\n0\r\nA: b\r\n\r\n`,
    ),
    answer('Content-Encoding: gzip', zlib.gzipSync(PAGE)),
    answer('Content-Encoding: deflate', zlib.deflateSync(PAGE)),
    answer('Content-Encoding: br', zlib.brotliCompressSync(PAGE)),
    answer('Content-Encoding: gzip, gzip', zlib.gzipSync(zlib.gzipSync(Buffer.alloc(1_000_000)))),
    bytesOf([`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 302 Found\nLocation: /\nSet-Cookie: a\nSet-Cookie: b\n\n${PAGE}`]),
    bytesOf(['HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n', Buffer.from(`\ufeff${PAGE}`, 'utf16le')]),
];
