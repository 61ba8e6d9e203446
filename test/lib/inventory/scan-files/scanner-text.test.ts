import t from 'tap';
import { bannerService, vulnInfo, vulnName, withoutByteEscapes } from '../../../../lib/inventory/scan-files/scanner-text.ts';

t.test('cuts names that are too long where they can be cut', async (t) => {
    t.equal(vulnName(` ${'x'.repeat(300)}`), 'x'.repeat(255));
    t.equal(vulnName(`${'x'.repeat(254)}💾`), 'x'.repeat(254));
});

t.test('cuts off texts that are too long, and shows it', async (t) => {
    t.equal(vulnInfo('x'.repeat(65_536)).length, 65_536);
    t.equal(vulnInfo('x'.repeat(65_537)), `${'x'.repeat(65_535)}…`);
    t.equal(vulnInfo(`${'x'.repeat(65_534)}💾💾`), `${'x'.repeat(65_534)}…`);
});

t.test('reads bytes that were written one by one where they are text, and keeps what is none', async (t) => {
    const any = /(?:\\x[0-9a-f]{2})+/g;
    for (const [text, read] of [
        ['caf\\xc3\\xa9 \\xe2\\x82\\xac', 'café €'],
        ['a\\x0d\\x0ab', 'a\r\nb'],
        ['\\xc3', '\\xc3'],
        ['\\xff\\xfe', '\\xff\\xfe'],
        ['\\xzz', '\\xzz'],
        ['\\x00', '\ufffd'],
        ['plain', 'plain'],
    ] as const) {
        t.equal(withoutByteEscapes(text, any), read);
    }
});

t.test('takes from a banner of masscan what names the protocol, without what no database stores', async (t) => {
    t.strictSame(bannerService('telnet', '\u00ff\u00fd\0login:'), { name: 'telnet', info: '\u00ff\u00fd\ufffdlogin:' });
    t.strictSame(bannerService('ssh', ''), { name: 'ssh', info: null });
    t.strictSame(bannerService('ssh', undefined), { name: 'ssh', info: undefined });
    t.strictSame(bannerService('title', 'Home'), {});
});
