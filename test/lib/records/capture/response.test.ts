import t from 'tap';
import { responseEnd } from '../../../../lib/records/capture/response.ts';

const OK = 'HTTP/1.1 200 OK\r\n';

/** What the answer's end is found to be when the text comes in pieces of so many bytes; null when it is never found. */
function endOf(text: string, size: number): number | null {
    const bytes = Buffer.from(text, 'latin1');
    const find = responseEnd();
    for (let length = size; ; length += size) {
        const end = find(bytes.subarray(0, length));
        if (end !== null || length >= bytes.length) {
            return end;
        }
    }
}

/** Whole answers; whatever comes after them does not belong to them. */
const WHOLE: Readonly<Record<string, string>> = {
    'a length': `${OK}Content-Length: 5\r\n\r\nhello`,
    'a length of nothing': `${OK}content-length:0\r\n\r\n`,
    'the same length twice': `${OK}Content-Length: 5, 5\r\nContent-Length: 5\r\n\r\nhello`,
    'lines that end with LF': 'HTTP/1.0 200 OK\nContent-Length: 5\n\nhello',
    'a blank before the colon': `${OK}Content-Length : 5\r\n\r\nhello`,
    'a length and no coding': `${OK}Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello`,
    'a folded header': `${OK}Content-Length:\r\n 5\r\n\r\nhello`,
    'no body': 'HTTP/1.1 204 No Content\r\n\r\n',
    'not modified': 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n',
    chunks: `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0A;x="y"\r\n0123456789\r\n0\r\n\r\n`,
    'chunks before a length': `${OK}Content-Length: 1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`,
    'a trailer': `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\nX-A: b\r\nX-C: d\r\n\r\n`,
    'chunks that look like their end': `${OK}Transfer-Encoding: chunked\r\n\r\n7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n`,
    'chunks with a long extension': `${OK}Transfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(5000)}\r\na\r\n0\r\n\r\n`,
    'interim answers first': `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}Content-Length: 1\r\n\r\nx`,
};

/** Answers that only the end of the connection ends. */
const OPEN: Readonly<Record<string, string>> = {
    'no headers': 'HTTP/1.1 200 OK\r\n\r\nhello',
    'no length': `${OK}\r\nhello`,
    'two lengths': `${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\nxyz`,
    'a length that is none': `${OK}Content-Length: -1\r\n\r\nx`,
    'a length beyond all measure': `${OK}Content-Length: 9999999999999999999\r\n\r\nx`,
    'another coding': `${OK}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`,
    'a bad chunk size': `${OK}Transfer-Encoding: chunked\r\n\r\nzz\r\n0\r\n\r\n`,
    'a chunk size beyond all measure': `${OK}Transfer-Encoding: chunked\r\n\r\nfffffffffffff\r\n0\r\n\r\n`,
    'a chunk longer than it says': `${OK}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n`,
    'an upgrade': 'HTTP/1.1 101 Switching Protocols\r\nContent-Length: 0\r\n\r\nx',
    'not HTTP': 'SSH-2.0-OpenSSH\r\n\r\nContent-Length: 0\r\n\r\n',
    'a body alone': '<html>\n\n</html>',
    'a head that does not end': `${OK}Content-Length: 0\r\n`,
    'less than its length': `${OK}Content-Length: 5\r\n\r\nhell`,
    'less than its chunk': `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhell`,
};

for (const [what, text] of Object.entries(WHOLE)) {
    t.test(`finds the end of an answer with ${what}, however it is cut`, async (t) => {
        for (const size of [1, 2, 3, 7, 100_000]) {
            t.equal(endOf(text, size), text.length, `in pieces of ${size}`);
            t.equal(endOf(`${text}HTTP/1.1 200 OK\r\n\r\n`, size), text.length, `in pieces of ${size}, with more behind it`);
        }
    });
}

for (const [what, text] of Object.entries(OPEN)) {
    t.test(`waits for the end of the connection after ${what}`, async (t) => {
        for (const size of [1, 2, 3, 7, 100_000]) {
            t.equal(endOf(text, size), null, `in pieces of ${size}`);
        }
    });
}

t.test('takes time in proportion to the bytes', async (t) => {
    const hostile = {
        'one line without an end': `${OK}X: ${'x'.repeat(700_000)}`,
        'many lines': `${OK}${'a: b\r\n'.repeat(110_000)}`,
        'many interim answers': 'HTTP/1.1 100 C\r\n\r\n'.repeat(38_000),
        'many chunks': `${OK}Transfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(110_000)}`,
        'a trailer without an end': `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n${'x'.repeat(700_000)}`,
    };
    for (const [what, text] of Object.entries(hostile)) {
        const before = process.cpuUsage();
        t.equal(endOf(text, 10), null, what);
        const { user, system } = process.cpuUsage(before);
        t.ok(user + system < 2_000_000, `${what}: ${Math.round((user + system) / 1000)} ms`);
    }
});
