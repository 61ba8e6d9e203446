import fc from 'fast-check';
import t from 'tap';
import { IP_PATTERN } from '../../../lib/records/address-patterns.ts';
import { addressKey, hostKey } from '../../../lib/records/lookup-keys.ts';

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
    const parts = fc.constantFrom('', '0', '1', 'ffff', 'AB', '::', '1.2.3.4', ':');
    const text = fc.tuple(fc.array(parts, { maxLength: 9 }), fc.constantFrom(':', '')).map(([some, between]) => some.join(between));
    fc.assert(
        fc.property(fc.oneof(text, fc.ipV4(), fc.ipV6()), (ip) => {
            fc.pre(IP_PATTERN.test(ip));
            return addressKey(addressKey(ip)) === addressKey(ip);
        }),
        { numRuns: 2000, maxSkipsPerRun: 1000 },
    );
    t.end();
});
