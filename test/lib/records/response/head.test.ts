import t from 'tap';
import { parseResponse } from '../../../../lib/records/index.ts';
import { bytesOf, parsedHttp } from './parsed-http.ts';

function pairs(text: string): string[] {
    return parsedHttp(text).headers.map(({ name, value }) => `${name}=${value}`);
}

t.test('reads an ordinary answer', (t) => {
    const raw = 'HTTP/1.1 404 Not Found\r\nServer: nginx\r\nSet-Cookie: a=1\r\nX-B: c\r\nset-cookie: b=2\r\n\r\nbody';
    t.strictSame(parsedHttp(raw), {
        http: true,
        version: '1.1',
        status: 404,
        reason: 'Not Found',
        headers: [
            { name: 'server', rawName: 'Server', value: 'nginx' },
            { name: 'set-cookie', rawName: 'Set-Cookie', value: 'a=1' },
            { name: 'x-b', rawName: 'X-B', value: 'c' },
            { name: 'set-cookie', rawName: 'set-cookie', value: 'b=2' },
        ],
        rawBody: Buffer.from('body'),
        body: Buffer.from('body'),
        charset: null,
        title: null,
        truncated: false,
        problems: [],
    });
    t.end();
});

t.test('splits head and body at the first blank line, whatever ends the lines', (t) => {
    const heads = [
        'HTTP/1.1 200 OK\r\nA: b\r\n\r\n',
        'HTTP/1.1 200 OK\nA: b\n\n',
        'HTTP/1.1 200 OK\r\nA: b\n\r\n',
        'HTTP/1.1 200 OK\nA: b\r\n\n',
    ];
    for (const head of heads) {
        for (const body of ['', 'x', '\r\n', 'x\n\ny\r\n\r\nz', '\n\n']) {
            const response = parsedHttp(head + body);
            t.same(
                [response.reason, response.headers, response.body.toString(), response.problems],
                ['OK', [{ name: 'a', rawName: 'A', value: 'b' }], body, []],
                JSON.stringify(head + body),
            );
        }
    }

    t.end();
});

t.test('reads the status lines that are seen', (t) => {
    const lines: [string, string, number, string][] = [
        ['HTTP/1.1 200 OK', '1.1', 200, 'OK'],
        ['HTTP/1.0 200 Document follows', '1.0', 200, 'Document follows'],
        ['HTTP/1.1 200', '1.1', 200, ''],
        ['HTTP/1.1 200 ', '1.1', 200, ''],
        ['HTTP/1.1  200\tFine', '1.1', 200, 'Fine'],
        ['HTTP/2 200 ', '2', 200, ''],
        ['http/1.1 200 ok', '1.1', 200, 'ok'],
        ['ICY 200 OK', 'ICY', 200, 'OK'],
        ['HTTP/1.1 999 Unauthorised \xe9', '1.1', 999, 'Unauthorised \xe9'],
        ['HTTP/0.9 000', '0.9', 0, ''],
        ['\r\n\nHTTP/1.1 200 OK', '1.1', 200, 'OK'],
    ];
    for (const [line, version, status, reason] of lines) {
        const response = parsedHttp(`${line}\r\nA: b\r\n\r\n`);
        t.same([response.version, response.status, response.reason, response.headers.length], [version, status, reason, 1], line);
    }

    t.end();
});

t.test('keeps what is not HTTP', (t) => {
    const others = [
        '',
        '\r\n',
        '\0',
        'HTTP',
        'HTTP/1.1',
        'HTTP/1.1 20',
        'HTTP/1.1 2000 OK',
        'HTTP/1.1 OK',
        '<html>',
        'SSH-2.0-OpenSSH_9.2\r\n',
    ];
    for (const other of [
        ...others,
        ' HTTP/1.1 200 OK\r\n\r\n',
        'RTSP/1.0 200 OK\r\n\r\n',
        '\x15\x03\x01\0\x02\x02\x46',
        'GET / HTTP/1.1\r\n\r\n',
    ]) {
        t.strictSame(parseResponse(bytesOf(other)), { http: false, bytes: bytesOf(other) }, JSON.stringify(other));
    }

    t.end();
});

t.test('reads a head that is cut off', (t) => {
    for (const end of ['', '\r', '\r\n', '\r\n\r']) {
        const { status, headers, body, truncated, problems } = parsedHttp(`HTTP/1.1 200 OK\r\nServer: x${end}`);
        t.same([status, headers.length, body.length, truncated, problems], [200, 1, 0, true, ['head_cut_off']], JSON.stringify(end));
    }

    t.same(parsedHttp('HTTP/1.1 200').problems, ['head_cut_off']);
    t.same(parsedHttp('HTTP/1.1 200 OK\r\nServer: x\r\nConte').problems, ['head_cut_off', 'header_malformed']);
    t.end();
});

t.test('joins folded lines', (t) => {
    t.same(pairs('HTTP/1.1 200 OK\r\nA: b,\r\n  c,\n\td\r\nE: f\r\n\r\n'), ['a=b, c, d', 'e=f']);
    t.end();
});

t.test('passes over lines that are no headers', (t) => {
    const raw = 'HTTP/1.1 200 OK\r\n leading: x\r\nA: b\r\nno colon\r\n: no name\r\nC : d\r\nE:\r\n\r\n';
    t.same(pairs(raw), ['a=b', 'c=d', 'e=']);
    t.same(parsedHttp(raw).problems, ['header_malformed']);
    t.equal(parsedHttp(raw).truncated, false);
    t.end();
});

t.test('keeps the bytes of header values', (t) => {
    const bytes = ['HTTP/1.1 200 OK\r\nA: \t', Buffer.from('voilà', 'utf8'), ' \r\nB: x\0y\x01\x7f\r\nC: a\rb:c\r\n\r\n'];
    t.same(
        parsedHttp(bytes).headers.map(({ value }) => Buffer.from(value, 'latin1').toString()),
        ['voilà', 'x\0y\x01\x7f', 'a\rb:c'],
    );
    t.end();
});

t.test('reads no more than 1000 header lines and 256 KiB of a head', (t) => {
    const { headers, problems } = parsedHttp(`HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(1001)}\r\n`);
    t.same([headers.length, problems], [1000, ['headers_capped']]);
    t.same(parsedHttp(`HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(1000)}\r\n`).problems, []);

    const long = parsedHttp(`HTTP/1.1 200 OK\r\nA: ${'b'.repeat(300_000)}\r\nC: d\r\n\r\nbody`);
    t.ok(long.headers[0]?.value.startsWith('bbb'));
    t.same([long.headers.length, long.body.toString(), long.problems], [1, 'body', ['headers_capped']]);
    t.end();
});

t.test('takes an answer of nothing but interim heads for one that was cut off', (t) => {
    const interim = 'HTTP/1.1 100 Continue\r\n\r\n';
    for (const raw of [interim, interim.repeat(3), interim.repeat(9), `${interim}HTTP/1.1 20`]) {
        const { status, truncated, problems } = parsedHttp(raw);
        t.match({ status, truncated, problems: new Set(problems) }, { status: 100, truncated: true, problems: new Set(['head_cut_off']) });
    }

    t.end();
});

t.test('passes over interim answers', (t) => {
    const final = 'HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody';
    for (const interim of ['HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n', 'HTTP/1.0 100\n\n'.repeat(8)]) {
        const { status, headers, body } = parsedHttp(interim + final);
        t.same([status, headers.length, body.toString()], [200, 1, 'body'], interim);
    }

    t.equal(parsedHttp('HTTP/1.1 100 Continue\r\n\r\n'.repeat(9) + final).status, 100);
    t.equal(parsedHttp(`HTTP/1.1 101 Switching Protocols\r\n\r\n${final}`).status, 101);
    t.end();
});

t.test('takes views of the bytes given', (t) => {
    const whole = new Uint8Array(bytesOf('..HTTP/1.1 200 OK\r\n\r\nbody..'));
    const response = parseResponse(whole.subarray(2, -2));
    t.ok(response.http);
    t.equal(response.http && response.body.toString(), 'body');
    t.equal(response.http && response.body.buffer, whole.buffer);
    t.end();
});
