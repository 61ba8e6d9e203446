import zlib from 'node:zlib';
import t, { type Test } from 'tap';
import type { HttpResponse, ResponseLimits, ResponseProblem } from '../../../../lib/records/index.ts';
import { bytesOf, parsedHttp } from './parsed-http.ts';

const CHUNKED = 'Transfer-Encoding: chunked';
const TEXT = Array.from({ length: 300 }, (_, index) => `<p>line ${index} ${Math.sin(index)}</p>`).join('\n');
const GZIP = zlib.gzipSync(TEXT);

function answer(header: string, body: string | Uint8Array, limits?: ResponseLimits): HttpResponse {
    return parsedHttp(['HTTP/1.1 200 OK\r\n', header, '\r\n\r\n', body], limits);
}

/** Headers, the raw body under them, the body it comes to, and the problems. */
type Case = readonly [header: string, raw: string | Uint8Array, body: string, ...problems: ResponseProblem[]];

const CUTS: readonly ResponseProblem[] = ['body_short', 'chunks_broken', 'coding_broken'];

function holds(t: Test, cases: readonly Case[]): void {
    for (const [header, raw, body, ...problems] of cases) {
        const response = answer(header, raw);
        const name = `${header} ${JSON.stringify(bytesOf([raw]).toString('latin1', 0, 40))}`;
        t.same([response.body.toString('latin1'), response.problems], [body, problems], name);
        t.equal(
            response.truncated,
            problems.some((problem) => CUTS.includes(problem)),
            name,
        );
        t.ok(response.rawBody.equals(bytesOf([raw])), name);
    }

    t.end();
}

t.test('takes the chunks off', (t) => {
    holds(t, [
        [CHUNKED, '3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n', 'abcde'],
        ['transfer-encoding: Chunked', '3\r\nabc\r\n0\r\n\r\n', 'abc'],
        [CHUNKED, '0\r\n\r\n', ''],
        [CHUNKED, '3\nabc\n2\nde\n0\n\n', 'abcde'],
        [CHUNKED, 'A\r\n0123456789\r\n00b\r\n0123456789\n\r\n0\r\n\r\n', '01234567890123456789\n'],
        [CHUNKED, '3;name=value;x="y"\r\nabc\r\n 2 \r\nde\r\n0;last\r\n\r\n', 'abcde'],
        [CHUNKED, '3\r\nabc\r\n0\r\nExpires: x\r\nETag: y\r\n\r\n', 'abc'],
        [CHUNKED, '3\r\nabc\r\n0\r\n', 'abc'],
        [`Content-Length: 1\r\n${CHUNKED}`, '3\r\nabc\r\n0\r\n\r\n', 'abc'],
    ]);
});

t.test('keeps what there is of broken chunks', (t) => {
    holds(t, [
        [CHUNKED, '3\r\nabc\r\n5\r\nde', 'abcde', 'chunks_broken'],
        [CHUNKED, '3\r\nabc\r\n', 'abc', 'chunks_broken'],
        [CHUNKED, '3\r\nabc', 'abc', 'chunks_broken'],
        [CHUNKED, '3\r\nabc\r\n-2\r\nde\r\n0\r\n\r\n', 'abc', 'chunks_broken'],
        [CHUNKED, '3\r\nabc\r\nrubbish\r\nde\r\n0\r\n\r\n', 'abc', 'chunks_broken'],
        [CHUNKED, '3\r\nabcde\r\n0\r\n\r\n', 'abc', 'chunks_broken'],
        [CHUNKED, 'ffffffffffffffff\r\nabc', 'abc', 'chunks_broken'],
        [CHUNKED, '3\r\nabc\r\n11111111111111111\r\nde', 'abc', 'chunks_broken'],
        [CHUNKED, '1a', '', 'chunks_broken'],
        [CHUNKED, '', '', 'chunks_broken'],
        [CHUNKED, '3\r\nabc\r\n0\r\n\r\nHTTP/1.1 400', 'abc', 'body_excess'],
    ]);
});

t.test('keeps a body that is not chunked', (t) => {
    holds(t, [
        [CHUNKED, '<html>\r\nabc', '<html>\r\nabc', 'chunks_absent'],
        [CHUNKED, '-5\r\nabc', '-5\r\nabc', 'chunks_absent'],
        [`${CHUNKED}\r\nContent-Encoding: gzip`, GZIP, TEXT, 'chunks_absent'],
        [`${CHUNKED}\r\nContent-Length: 3`, '{"a":1}', '{"a":1}', 'chunks_absent'],
    ]);
});

t.test('believes a Content-Length as far as it can', (t) => {
    holds(t, [
        ['Content-Length: 3', 'abc', 'abc'],
        ['Content-Length: 3, 3\r\nContent-Length: 3', 'abc', 'abc'],
        ['Content-Length: 0', '', ''],
        ['Content-Length: 5', 'abc', 'abc', 'body_short'],
        ['Content-Length: 99999999999999999999999', 'abc', 'abc', 'body_short'],
        ['Content-Length: 2', 'abc', 'ab', 'body_excess'],
        ['Content-Length:', 'abc', 'abc'],
        ...['-1', '+3', '3.0', '0x3', '1e3', 'three', '3 3', '3, 4', '3\r\nContent-Length: 4'].map(
            (value): Case => [`Content-Length: ${value}`, 'abc', 'abc', 'length_invalid'],
        ),
    ]);
});

t.test('gives no body to an answer that cannot have one', (t) => {
    for (const status of [101, 204, 304]) {
        const head = `HTTP/1.1 ${status} X\r\nContent-Length: 9\r\n`;
        const { body, truncated, problems } = parsedHttp(`${head}\r\n`);
        t.same([body.length, truncated, problems], [0, false, []], `${status}`);

        const excess = parsedHttp(`${head}\r\nabc`);
        t.same([excess.body.length, excess.rawBody.toString(), excess.problems], [0, 'abc', ['body_excess']], `${status}`);
    }

    t.end();
});

t.test('takes the content codings off', (t) => {
    const chunked = (bytes: Buffer): Buffer => bytesOf([`${bytes.length.toString(16)}\r\n`, bytes, '\r\n0\r\n\r\n']);
    holds(t, [
        ['Content-Encoding: gzip', GZIP, TEXT],
        ['Content-Encoding: X-GZIP', GZIP, TEXT],
        ['Content-Encoding: gzip', bytesOf([GZIP, zlib.gzipSync('!')]), `${TEXT}!`],
        ['Content-Encoding: deflate', zlib.deflateSync(TEXT), TEXT],
        ['Content-Encoding: deflate', zlib.deflateRawSync(TEXT), TEXT],
        ['Content-Encoding: br', zlib.brotliCompressSync(TEXT), TEXT],
        ['Content-Encoding: gzip, identity , br', zlib.brotliCompressSync(GZIP), TEXT],
        ['Content-Encoding: deflate\r\nContent-Encoding: gzip', zlib.gzipSync(zlib.deflateSync(TEXT)), TEXT],
        [`Content-Encoding: gzip\r\n${CHUNKED}`, chunked(GZIP), TEXT],
        ['Transfer-Encoding: gzip, chunked', chunked(GZIP), TEXT],
        [`Content-Encoding: gzip\r\nTransfer-Encoding: deflate\r\n${CHUNKED}`, chunked(zlib.deflateSync(GZIP)), TEXT],
        ['Transfer-Encoding: chunked, gzip', zlib.gzipSync(chunked(Buffer.from(TEXT))), TEXT],
        ['Content-Encoding: gzip\r\nContent-Length: 0', '', ''],
        ['Content-Encoding: gzip', zlib.gzipSync(''), ''],
    ]);
});

t.test('takes zstd off where Node can', (t) => {
    const { zstdCompressSync } = zlib as { readonly zstdCompressSync?: (text: string) => Buffer };
    const raw = zstdCompressSync?.(TEXT) ?? Buffer.from('28b52ffd0400010000', 'hex');
    const { body, problems } = answer('Content-Encoding: zstd', raw);
    t.same(problems, zstdCompressSync === undefined ? ['coding_unknown'] : []);
    t.ok(body.equals(zstdCompressSync === undefined ? raw : Buffer.from(TEXT)));
    t.end();
});

t.test('keeps a body that is not in the coding named', (t) => {
    holds(t, [
        ...['gzip', 'deflate', 'br', 'gzip, br'].map((coding): Case => [`Content-Encoding: ${coding}`, TEXT, TEXT, 'coding_absent']),
        ['Content-Encoding: br', '[]', '[]', 'coding_absent'],
        ['Content-Encoding: gzip', 'voil\xe0', 'voil\xe0', 'coding_absent'],
        ['Content-Encoding: deflate', 'x^ is how zlib data begins', 'x^ is how zlib data begins', 'coding_absent'],
        ['Content-Encoding: gzip, gzip', GZIP, TEXT, 'coding_absent'],
        ['Content-Encoding: gzip\r\nContent-Length: 3', TEXT, TEXT, 'body_excess', 'coding_absent'],
        ['Content-Encoding: compress', 'abc', 'abc', 'coding_unknown'],
        ['Content-Encoding: gzip, sdch', GZIP, GZIP.toString('latin1'), 'coding_unknown'],
        ['Content-Encoding: gzip, gzip, gzip, gzip, gzip', GZIP, TEXT, 'coding_absent', 'coding_unknown'],
        [`Content-Encoding: x, x, x, x\r\n${CHUNKED}`, '3\r\nabc\r\n0\r\n\r\n', 'abc', 'coding_unknown'],
    ]);
});

t.test('keeps what can be decoded of a body that is cut off', (t) => {
    const forms = { gzip: GZIP, deflate: zlib.deflateSync(TEXT), 'deflate ': zlib.deflateRawSync(TEXT), br: zlib.brotliCompressSync(TEXT) };
    for (const [coding, raw] of Object.entries(forms)) {
        for (const part of [0.5, 0.9]) {
            const { body, truncated, problems } = answer(`Content-Encoding: ${coding}`, raw.subarray(0, raw.length * part));
            t.ok(body.length > TEXT.length * part * 0.8 && TEXT.startsWith(body.toString()), `${coding} ${part}: ${body.length}`);
            t.same([truncated, problems], [true, ['coding_broken']]);
        }

        const short = answer(`Content-Encoding: ${coding}\r\nContent-Length: ${raw.length}`, raw.subarray(0, -1));
        t.ok(short.body.length > TEXT.length * 0.99);
        t.same(short.problems, ['body_short', 'coding_broken']);
    }

    t.end();
});

t.test('keeps what can be decoded of a damaged body', (t) => {
    for (const [coding, raw] of Object.entries({ gzip: Buffer.from(GZIP), deflate: zlib.deflateSync(TEXT) })) {
        const damage = Math.floor(raw.length * 0.7);
        raw.fill(0xff, damage, damage + 40);
        const { body, truncated, problems } = answer(`Content-Encoding: ${coding}`, raw);
        const start = TEXT.slice(0, TEXT.length * 0.6);
        t.ok(body.toString().startsWith(start), coding);
        t.same([truncated, problems], [true, ['coding_broken']]);
    }

    const checksum = Buffer.from(GZIP);
    checksum.fill(0, checksum.length - 8);
    t.ok(answer('Content-Encoding: gzip', checksum).body.length > TEXT.length * 0.95);
    holds(t, [
        ['Content-Encoding: gzip', '\x1f\x8bxyz', '\x1f\x8bxyz', 'coding_broken'],
        ['Content-Encoding: br', 'voil\xe0', 'voil\xe0', 'coding_broken'],
        ['Content-Encoding: deflate', '{"nom":"Ren\xe91"}', '{"nom":"Ren\xe91"}', 'coding_broken'],
    ]);
});

t.test('caps what it decodes', (t) => {
    const limits = { maxBodyBytes: 100_000 };
    for (const raw of [zlib.gzipSync(Buffer.alloc(10_000_000)), zlib.gzipSync(Buffer.alloc(100_001))]) {
        const { body, truncated, problems } = answer('Content-Encoding: gzip', raw, limits);
        t.ok(body.length <= 100_000 && body.length > 20_000, `${body.length}`);
        t.ok(body.buffer.byteLength < 200_000, `${body.buffer.byteLength} bytes were unpacked`);
        t.same([truncated, problems], [true, ['body_capped']]);
    }

    t.same(answer('Content-Encoding: gzip', zlib.gzipSync(Buffer.alloc(100_000)), limits).problems, []);
    for (const [name, raw] of Object.entries({
        br: zlib.brotliCompressSync(Buffer.alloc(10_000_000)),
        deflate: zlib.deflateSync(Buffer.alloc(10_000_000)),
    })) {
        const { body, problems } = answer(`Content-Encoding: ${name}`, raw, limits);
        t.same(problems, ['body_capped']);
        t.ok(body.buffer.byteLength < 200_000, `${name}: ${body.buffer.byteLength} bytes were unpacked`);
    }

    t.end();
});

t.test('caps a plain body', (t) => {
    const { body, rawBody, truncated, problems } = answer('A: b', 'abcdef', { maxBodyBytes: 4 });
    t.same([body.toString(), rawBody.toString(), truncated, problems], ['abcd', 'abcdef', true, ['body_capped']]);
    t.equal(answer('A: b', Buffer.alloc(4_194_305)).body.length, 4_194_304);
    t.end();
});
