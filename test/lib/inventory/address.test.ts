import fc from 'fast-check';
import t from 'tap';
import { canonicalAddress } from '../../../lib/inventory/address.ts';

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
