import t from 'tap';
import { authorityOf, type CaptureTarget, parseTarget, readTargetLines, type TargetLine } from '../../../../lib/records/capture/target.ts';

const GOOD: Readonly<Record<string, CaptureTarget>> = {
    'https://web.example.test': { host: 'web.example.test', port: 443, path: '/' },
    'HTTPS://Web.Example.test:8443/a/../b?c=d&e=%20#f': { host: 'web.example.test', port: 8443, path: '/b?c=d&e=%20' },
    'web.example.test:8443': { host: 'web.example.test', port: 8443, path: '/' },
    'web.example.test': { host: 'web.example.test', port: 443, path: '/' },
    'web.example.test.:443': { host: 'web.example.test', port: 443, path: '/' },
    '192.0.2.7:443': { host: '192.0.2.7', port: 443, path: '/' },
    'https://0xC0000207/': { host: '192.0.2.7', port: 443, path: '/' },
    '[2001:DB8::1]:8443': { host: '2001:db8::1', port: 8443, path: '/' },
    '2001:db8::1': { host: '2001:db8::1', port: 443, path: '/' },
    'https://[::1]/': { host: '::1', port: 443, path: '/' },
    'https://bücher.example.test/ü?ß': { host: 'xn--bcher-kva.example.test', port: 443, path: '/%C3%BC?%C3%9F' },
    'a_b.example.test': { host: 'a_b.example.test', port: 443, path: '/' },
    'https://web.example.test:8443/plain 127.0.0.2': { host: 'web.example.test', port: 8443, path: '/plain', address: '127.0.0.2' },
    ' web.example.test\t[::1] ': { host: 'web.example.test', port: 443, path: '/', address: '::1' },
    'https://web.example.test/user@host': { host: 'web.example.test', port: 443, path: '/user@host' },
};

t.test('reads URLs and host:port', async (t) => {
    for (const [text, target] of Object.entries(GOOD)) {
        t.strictSame(parseTarget(text), target, text);
    }
});

t.test('refuses what is no target, says why, and does not repeat it', async (t) => {
    const bad: Readonly<Record<string, RegExp>> = {
        '': /neither an https URL nor host:port/,
        'http://web.example.test/': /not an https URL/,
        'ftp://web.example.test/': /not an https URL/,
        'https:/web.example.test/': /neither/,
        'https:web.example.test': /neither/,
        'https:///path': /neither/,
        'web.example.test/path': /neither/,
        'web.example.test?x': /neither/,
        'https://user:secret@web.example.test/': /user name/,
        'user@web.example.test': /user name/,
        'https://web.example.test\\@other.test/': /backslash/,
        'web.example.test:0': /port 0/,
        'web.example.test:65536': /neither/,
        'web.example.test:https': /neither/,
        'https://-a.example.test/': /neither a name nor an IP address/,
        'https://a..b/': /neither/,
        'https://a*b.test/': /neither/,
        'fe80::1%eth0': /neither/,
        'web.example.test other.test': /no IP address/,
        'web.example.test 127.0.0.1:80': /no IP address/,
        'web.example.test 127.0.0.1 127.0.0.2': /more than a URL and an address/,
        'https://web.example.test/\r\nX: y': /control characters/,
        'web.example.test\u0000': /control characters/,
        [`https://web.example.test/${'x'.repeat(9000)}`]: /longer than 8192 characters/,
        [`https://web.example.test/${'ü'.repeat(2000)}`]: /path of more than 8192 characters when encoded/,
    };
    for (const [text, message] of Object.entries(bad)) {
        t.throws(() => parseTarget(text), { code: 'INVALID_INPUT', field: 'target', message }, text.slice(0, 60));
        t.throws(() => parseTarget(text), { message: /^(?!.*secret)[ -~]{1,100}$/ });
    }
});

t.test('says what goes into the Host header', async (t) => {
    t.equal(authorityOf({ host: 'a.test', port: 443 }), 'a.test');
    t.equal(authorityOf({ host: 'a.test', port: 8443 }), 'a.test:8443');
    t.equal(authorityOf({ host: '::1', port: 443 }), '[::1]');
    t.equal(authorityOf({ host: '::1', port: 8443 }), '[::1]:8443');
});

async function read(...chunks: readonly (string | Uint8Array)[]): Promise<TargetLine[]> {
    const lines: TargetLine[] = [];
    for await (const line of readTargetLines(source(chunks))) {
        lines.push(line);
    }

    return lines;
}

async function* source(chunks: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
    for (const chunk of chunks) {
        yield Buffer.from(chunk);
    }
}

t.test('reads a list, and passes over blank lines and comments', async (t) => {
    const lines = await read('\uFEFFa.test\r\n\n  # not this one\nhttps://b.test/x# 192.0', '.2.7\n \t\nc.test');
    t.strictSame(lines, [
        { line: 1, ok: true, target: { host: 'a.test', port: 443, path: '/' } },
        { line: 4, ok: true, target: { host: 'b.test', port: 443, path: '/x', address: '192.0.2.7' } },
        { line: 6, ok: true, target: { host: 'c.test', port: 443, path: '/' } },
    ]);
});

t.test('tells a bad line with its number and reason, and goes on', async (t) => {
    const lines = await read('http://a.test/\n', Buffer.from([0xff, 0x0a]), `${'x'.repeat(30_000)}\nb.test\n`);
    t.match(lines, [
        { line: 1, ok: false, reason: 'is not an https URL' },
        { line: 2, ok: false, reason: 'is not valid UTF-8' },
        { line: 3, ok: false, reason: /is longer than \d+ bytes/ },
        { line: 4, ok: true },
    ]);
});
