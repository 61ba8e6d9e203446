import fc from 'fast-check';
import t from 'tap';
import { parseResponse } from '../../../../lib/records/index.ts';
import { seeded } from '../../../support/seeded.ts';
import { mutated } from './mutated.ts';
import { bytesOf } from './parsed-http.ts';
import { sampleResponses } from './sample-responses.ts';
import { isSound, MAX_BODY_BYTES } from './sound-response.ts';

t.test('takes any bytes', (t) => {
    const heads = fc.constantFrom(
        '',
        'HTTP/1.1 200 OK\r\n',
        ...sampleResponses.map((bytes) => bytes.toString('latin1').split(/(?<=\n\r?\n)/, 1)[0] ?? ''),
    );
    let read = 0;
    fc.assert(
        fc.property(heads, fc.uint8Array({ maxLength: 300 }), (head, rest) => {
            const bytes = bytesOf([head, rest]);
            const response = parseResponse(bytes, { maxBodyBytes: MAX_BODY_BYTES });
            read += response.http ? 1 : 0;
            return isSound(response, bytes);
        }),
        { numRuns: 3_000 },
    );
    t.ok(read > 1_000, `${read} read as HTTP`);
    t.end();
});

t.test('takes mutated answers', (t) => {
    const seen = new Set<string>();
    fc.assert(
        fc.property(fc.constantFrom(...sampleResponses), fc.integer(), (sample, seed) => {
            const bytes = mutated(sample, seeded(seed));
            const response = parseResponse(bytes, { maxBodyBytes: MAX_BODY_BYTES });
            seen.add(response.http ? 'http' : 'other');
            for (const problem of response.http ? response.problems : []) {
                seen.add(problem);
            }

            return isSound(response, bytes);
        }),
        { numRuns: 5_000 },
    );
    t.ok(seen.size > 10, `met ${[...seen].join(', ')}`);
    t.end();
});

/** A mebibyte of what makes a careless parser take quadratic time. */
const LONG: readonly (readonly [head: string, repeated: string])[] = [
    ['', '\r\n'],
    ['', 'HTTP/1.1 100 Continue\n\n'],
    ['HTTP/1.1 200 OK\r\n', 'a\n'],
    ['HTTP/1.1 200 OK\r\n', 'a:\n'],
    ['HTTP/1.1 200 OK\r\nA: b', '\r\n '],
    ['HTTP/1.1 200 OK\r\nA:', ' '],
    ['HTTP/1.1 200 OK\r\nContent-Length: ', '9,'],
    ['HTTP/1.1 200 OK\r\nContent-Encoding: ', 'gzip,'],
    ['HTTP/1.1 200 OK\r\nContent-Type: text/html', '; charset = '],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', '1\nx\n'],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', '0'],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n', 'a: b\r\n'],
    ...['<', '<!--', '<!---->', '<meta ', '<meta charset ', '<script>', '<svg></svg>', '<title ', ' \0'].map(
        (repeated) => ['HTTP/1.1 200 OK\r\n\r\n', repeated] as const,
    ),
    ...['&', '&#', '&notin', '&#9', ' ', ' \0', '9'].map((repeated) => ['HTTP/1.1 200 OK\r\n\r\n<title>&#', repeated] as const),
];

t.test('takes its time for no input', (t) => {
    for (const [head, repeated] of LONG) {
        const bytes = bytesOf([head, repeated.repeat(1_048_576 / repeated.length)]);
        const before = process.cpuUsage();
        parseResponse(bytes);
        const { user, system } = process.cpuUsage(before);
        t.ok(user + system < 1_000_000, JSON.stringify([head.slice(-30), repeated]));
    }

    t.end();
});
