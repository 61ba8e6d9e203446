import { isIP } from 'node:net';
import fc from 'fast-check';
import t from 'tap';
import { addressKey, canonicalAddress, HOST_PATTERN, hostKey, IP_PATTERN, NAME_PATTERN, parseAddress } from '../../lib/addresses.ts';

/** Texts of which many are addresses, in all forms, and many are nearly. */
const parts = fc.constantFrom('', '0', '1', 'ffff', 'AB', '::', '1.2.3.4', '01.2.3.4', ':', '%1');
const nearlyAddress = fc.tuple(fc.array(parts, { maxLength: 9 }), fc.constantFrom(':', '')).map(([some, between]) => some.join(between));

t.test('takes for an address what Node does, by pattern and by parser', async () => {
    fc.assert(
        fc.property(fc.oneof(nearlyAddress, fc.ipV4(), fc.ipV6(), fc.ipV4Extended()), (text) => {
            const isAddress = isIP(text) !== 0 && !text.includes('%');
            return IP_PATTERN.test(text) === isAddress && (parseAddress(text) !== null) === isAddress;
        }),
        { numRuns: 3000 },
    );
});

t.test('reads an address as URL does', async () => {
    fc.assert(
        fc.property(fc.oneof(nearlyAddress, fc.ipV6()), (text) => {
            fc.pre(isIP(text) === 6 && !text.includes('%'));
            const { hostname } = new URL(`http://[${text}]/`);
            return parseAddress(hostname.slice(1, -1))?.toString() === parseAddress(text)?.toString();
        }),
        { numRuns: 2000, maxSkipsPerRun: 1000 },
    );
});

t.test('gives one address one text', async (t) => {
    const cases: [string, string, string | null][] = [
        ['192.0.2.1', '192.0.2.1', null],
        [' 192.0.2.1\n', '192.0.2.1', null],
        ['2001:DB8:0:0:0:0:0:1', '2001:db8::1', null],
        ['2001:0db8::0001', '2001:db8::1', null],
        ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1', null],
        ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1', null],
        ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1', null],
        ['::', '::', null],
        ['0:0:0:0:0:0:0:1', '::1', null],
        ['::FFFF:C000:201', '::ffff:192.0.2.1', null],
        ['::ffff:192.0.2.1', '::ffff:192.0.2.1', null],
        ['64:ff9b::192.0.2.1', '64:ff9b::c000:201', null],
        ['fe80::1%eth0', 'fe80::1', 'eth0'],
        ['FE80::1%Eth0.5', 'fe80::1', 'Eth0.5'],
    ];
    for (const [text, address, scope] of cases) {
        t.strictSame(canonicalAddress(text), { address, scope }, text);
        t.strictSame(canonicalAddress(address), { address, scope: null });
    }
});

t.test('refuses what is no address, or means two', async (t) => {
    const wrong = [
        '',
        ' ',
        'localhost',
        '1',
        '1.2.3',
        '256.0.0.1',
        '010.0.0.1',
        '0x7f.0.0.1',
        '1.2.3.4.5',
        '192.0.2.1/32',
        '192.0.2.1%eth0',
    ];
    const wrong6 = [
        ':',
        ':::',
        '1::2::3',
        '1:2:3:4:5:6:7',
        '1:2:3:4:5:6:7:8:9',
        '12345::',
        'fe80::1%',
        'fe80::1%a b',
        'fe80::1%a%b',
        '[::1]',
        '::1/128',
    ];
    for (const text of [...wrong, ...wrong6, `fe80::1%${'x'.repeat(65)}`, '::1\u0000', '::ffff:1.2.3']) {
        t.throws(() => canonicalAddress(text), { code: 'INVALID_INPUT', field: 'address' }, JSON.stringify(text));
        t.throws(() => addressKey(text), { code: 'INVALID_INPUT', field: 'ip', message: 'ip must be an IPv4 or IPv6 address' });
    }
});

t.test('writes IPv6 as URLs do, whatever the address', async () => {
    const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }));
    fc.assert(
        fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
            const text = groups.map((value) => value.toString(16).padStart(4, '0')).join(':');
            const { address } = canonicalAddress(text);
            return address.includes('.') || `[${address}]` === new URL(`http://[${text}]`).hostname;
        }),
    );
});

t.test('gives one address one key', (t) => {
    t.equal(addressKey('2001:DB8:0:0::0007'), addressKey('2001:db8::7'));
    t.not(addressKey('::ffff:192.0.2.7'), addressKey('192.0.2.7'));
    t.equal(addressKey('::1.2.3.4'), addressKey('::102:304'));
    t.not(addressKey('::1.2.3.4'), addressKey('::ffff:1.2.3.4'));
    t.equal(hostKey('2001:DB8::7'), addressKey('2001:db8::7'));
    t.end();
});

t.test('gives one name one key', (t) => {
    t.equal(hostKey('WWW.Example.COM.'), 'www.example.com');
    t.not(hostKey('example.com'), hostKey('www.example.com'));
    t.end();
});

t.test('has a key for every address that a record may hold', (t) => {
    fc.assert(
        fc.property(fc.oneof(nearlyAddress, fc.ipV4(), fc.ipV6()), (ip) => {
            fc.pre(IP_PATTERN.test(ip));
            return addressKey(addressKey(ip)) === addressKey(ip);
        }),
        { numRuns: 2000, maxSkipsPerRun: 1000 },
    );
    t.end();
});

t.test('takes names that resolve for names, and nothing else', async (t) => {
    const label = 'a'.repeat(63);
    for (const name of [
        'a',
        'A.b',
        'a_b.example',
        '_dmarc.example',
        'xn--bcher-kva.example',
        '1.example',
        `${label}.example`,
        'example.com.',
    ]) {
        t.ok(NAME_PATTERN.test(name) && HOST_PATTERN.test(name), name);
    }

    const long = `${`${label}.`.repeat(3)}${'a'.repeat(62)}`;
    for (const name of ['', '.', 'a..b', '-a', 'a-', 'a-.example', 'bücher.example', 'a b', '1.2', 'a.1', `a${label}.example`, long]) {
        t.notOk(NAME_PATTERN.test(name) || HOST_PATTERN.test(name), name);
    }

    t.ok(HOST_PATTERN.test('192.0.2.7') && HOST_PATTERN.test('::1') && !NAME_PATTERN.test('192.0.2.7') && !NAME_PATTERN.test('::1'));
});
