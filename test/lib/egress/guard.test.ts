import { isIPv6 } from 'node:net';
import fc from 'fast-check';
import t from 'tap';
import { parseAddress } from '../../../lib/addresses.ts';
import { egressGuard } from '../../../lib/egress/guard.ts';
import { isOwnAddress, ownHost } from '../../../lib/egress/own-host.ts';

const closed = egressGuard({ allow: [] });

const PUBLIC = [
    '8.8.8.8',
    '1.1.1.1',
    '93.184.216.34',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.0',
    '223.255.255.255',
].concat(['2606:4700::1111', '2001:4860:4860::8888', '2a00:1450:4001:81b::200e', '2620:4f:8001::1', '::ffff:8.8.8.8', '::ffff:808:808']);

/** First and last address of each block of the registries, and what lies in between where that is another entry. */
const FORBIDDEN = `
0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.0.0.1 127.255.255.255 169.254.0.0 169.254.255.255
172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.8 192.0.0.9 192.0.0.10 192.0.0.170 192.0.0.171 192.0.0.255 192.0.2.0 192.0.2.255 192.31.196.0 192.31.196.255
192.52.193.0 192.52.193.255 192.88.99.0 192.88.99.2 192.88.99.255 192.168.0.0 192.168.255.255 192.175.48.0 192.175.48.255 198.18.0.0 198.19.255.255
198.51.100.0 198.51.100.255 203.0.113.0 203.0.113.255 224.0.0.0 233.252.0.1 239.255.255.250 240.0.0.0 255.255.255.254 255.255.255.255
:: ::1 ::2 ::7f00:1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:a00:1 ::ffff:0:127.0.0.1 ::ffff:0:8.8.8.8 64:ff9b::7f00:1 64:ff9b::808:808 64:ff9b:1::1 64:ff9b:1:ffff::1
100:: 100::ffff:ffff:ffff:ffff 100:0:0:1::1 200::1 2001:: 2001:0:1::1 2001:1::1 2001:1::2 2001:1::3 2001:2::1 2001:3::1 2001:4:112::1 2001:5::1 2001:10::1 2001:1f::1
2001:20::1 2001:2f::1 2001:30::1 2001:3f::1 2001:1ff:ffff::1 2001:db8::1 2001:db8:ffff:: 2002:: 2002:808:808:: 2002:7f00:1::1 2620:4f:8000::1
3fff::1 3fff:fff::1 4000::1 5f00::1 8000::1 e000::1 fc00::1 fd00::1 fdff::1 fe80::1 febf::1 fec0::1 feff::1 ff00::1 ff02::1 ffff::1
2a00::5efe:7f00:1 2a00::200:5efe:8.8.8.8`
    .trim()
    .split(/\s+/);

const METADATA = [
    '169.254.169.254',
    '169.254.169.253',
    '169.254.170.2',
    '169.254.170.23',
    '169.254.0.23',
    '169.254.42.42',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
].concat(['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254', 'fd00:42::42', 'fd00:c1::a9fe:a9fe', 'fe80::a9fe:a9fe']);

t.test('opens public addresses only', async (t) => {
    for (const address of PUBLIC) {
        t.equal(closed.vet(address), null, address);
    }

    for (const address of [...FORBIDDEN, ...METADATA]) {
        t.type(closed.vet(address), 'string', address);
    }
});

t.test('closes the addresses of its own host, whatever name leads there, unless they themselves are opened', async (t) => {
    const addresses = ['8.8.4.4', '2606:4700::1', '10.0.0.5', 'fe80::1'];
    let now = 0;
    const own = (): readonly string[] => addresses;
    const guard = egressGuard({ allow: [], owners: { 'customer-7': ['8.8.4.4'] } }, own, () => now);
    for (const address of ['8.8.4.4', '::ffff:8.8.4.4', '2606:4700::1', '2606:4700:0:0:0:0:0:1']) {
        t.equal(guard.vet(address, 'hooks.example.com', 443), 'an address of this host', address);
        t.equal(guard.vetHost(address, 443), 'an address of this host', address);
    }
    t.equal(guard.vet('10.0.0.5'), closed.vet('10.0.0.5'));
    t.equal(guard.vet('127.0.0.1'), closed.vet('127.0.0.1'));
    t.equal(guard.vet('8.8.8.8'), null);
    t.equal(guard.ofOwner?.('customer-7')?.vet('8.8.4.4'), null);
    t.equal(guard.ofOwner?.('customer-7')?.vet('2606:4700::1'), 'an address of this host');

    for (const allow of ['8.8.4.4', '8.8.4.4/32', 'hooks.example.com', '8.8.4.4:443']) {
        t.equal(egressGuard({ allow: [allow] }, own).vet('8.8.4.4', 'hooks.example.com', 443), null, allow);
    }
    t.equal(egressGuard({ allow: ['2606:4700::1'] }, own).vet('2606:4700::1'), null);
    for (const [allow, address, why] of [
        ['8.8.4.0/24', '8.8.4.4', 'an address of this host'],
        ['10.0.0.0/8', '10.0.0.5', 'a private address'],
        ['2606:4700::/127', '2606:4700::1', 'an address of this host'],
        ['0.0.0.0/0', '::ffff:8.8.4.4', 'an address of this host'],
    ] as const) {
        t.equal(egressGuard({ allow: [allow] }, own).vet(address, 'hooks.other.example', 443), why, `${allow} opens others`);
    }
    t.equal(egressGuard({ allow: ['10.0.0.0/8'] }, own).vet('10.0.0.6'), null);
    t.equal(egressGuard({ allow: ['127.0.0.0/8'] }, own).vet('127.0.0.1'), null);
    t.equal(egressGuard({ allow: ['8.8.4.4:443'] }, own).vet('8.8.4.4', 'hooks.example.com', 80), 'an address of this host');

    addresses.pop();
    addresses.push('1.1.1.1');
    now += 1_001;
    t.equal(guard.vet('1.1.1.1'), 'an address of this host', 'as they are now');
});

t.test('closes nothing less after its addresses could not be read', async (t) => {
    let fails = true;
    const own = (): readonly string[] => {
        if (fails) {
            throw new Error('no interfaces');
        }
        return ['8.8.4.4'];
    };
    const guard = egressGuard({ allow: [] }, own, () => 0);
    t.throws(() => guard.vet('8.8.4.4'), { message: 'no interfaces' });
    t.throws(() => guard.vet('8.8.4.4'), { message: 'no interfaces' }, 'in the same moment as well');
    fails = false;
    t.equal(guard.vet('8.8.4.4'), 'an address of this host');
});

t.test('knows the addresses of its host by itself', async (t) => {
    for (const address of ownHost().addresses) {
        t.type(closed.vet(address), 'string', address);
        const parsed = parseAddress(address);
        t.equal(parsed === null || isOwnAddress(parsed), true, address);
    }
});

t.test('looks at the interfaces of its host once a second, and not again for each connection', async (t) => {
    let now = 0;
    let reads = 0;
    let looks = 0;
    const addresses = Array.from({ length: 5_000 }, (_, index) => `8.8.${index >> 8}.${index & 255}`);
    const watched = new Proxy(addresses, {
        get: (list, key, self) => {
            looks += 1;
            return Reflect.get(list, key, self) as unknown;
        },
    });
    const read = (): readonly string[] => {
        reads += 1;
        return watched;
    };
    const guard = egressGuard({ allow: [] }, read, () => now);
    const vetAll = (): void => {
        for (const connection of addresses.keys()) {
            guard.vet(`9.9.9.${connection & 255}`);
        }
    };

    guard.vet('9.9.9.9');
    const looksAtFirst = looks;
    vetAll();
    t.strictSame([reads, looks], [1, looksAtFirst]);
    now += 1_001;
    vetAll();
    t.equal(reads, 2);
    t.ok(looks < 2 * looksAtFirst, 'and parses none of those that it knows');
});

t.test('refuses whatever is not the plain text of an address', async (t) => {
    for (const text of [
        '',
        ' 8.8.8.8',
        '8.8.8',
        '010.8.8.8',
        '0x8.8.8.8',
        '134744072',
        '8.8.8.8.',
        'fe80::1%eth0',
        '2606:4700::1111%1',
        '[::1]',
        'example.com',
        '8.8.8.8/32',
    ]) {
        t.equal(closed.vet(text), 'something that is no plain IP address', text);
    }
});

t.test('opens what the operator names', async (t) => {
    const guard = egressGuard({
        allow: ['10.0.0.0/8', '192.168.1.7', 'fd12::/16', 'receiver.corp.internal', 'BÜCHER.example.', 'localhost', '::1'],
    });
    for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '192.168.1.7', 'fd12:1::1', '::1', '8.8.8.8']) {
        t.equal(guard.vet(address), null, address);
    }

    for (const address of ['192.168.1.8', '127.0.0.1', 'fd13::1', '172.16.0.1']) {
        t.type(guard.vet(address), 'string', address);
    }

    t.equal(guard.vet('192.168.9.9', 'receiver.corp.internal'), null);
    t.equal(guard.vet('192.168.9.9', 'Receiver.Corp.Internal.'), null);
    t.equal(guard.vet('192.168.9.9', 'xn--bcher-kva.example'), null);
    t.equal(guard.vet('192.168.9.9', 'other.corp.internal'), 'a private address');
    t.equal(guard.vetHost('receiver.corp.internal'), null);
    t.equal(guard.vetHost('localhost'), null);
    t.equal(guard.vetHost('a.localhost'), 'an internal name');
});

t.test('opens a way through NAT64 or a tunnel only to where the inner address may be called', async (t) => {
    const guard = egressGuard({ allow: ['64:ff9b::/96', '2002::/16', '2001::/32', '10.0.0.0/8', '2a00::/16'] });
    for (const address of [
        '64:ff9b::8.8.8.8',
        '64:ff9b::10.0.0.1',
        '2002:808:808::1',
        '2a00::5efe:808:808',
        '2001:0:808:808:0:0:f7f7:f7f7',
        '2a00::1',
    ]) {
        t.equal(guard.vet(address), null, address);
    }

    for (const address of [
        '64:ff9b::127.0.0.1',
        '64:ff9b::c0a8:1',
        '2002:7f00:1::1',
        '2a00::5efe:7f00:1',
        '2001:0:808:808:0:0:80ff:fffe',
    ]) {
        t.match(guard.vet(address), /that leads to/, address);
    }
});

t.test('never opens a cloud metadata address', async (t) => {
    const guard = egressGuard({ allow: ['0.0.0.0/0', '::/0', '169.254.169.254', 'friend.example'] });
    t.equal(guard.vet('127.0.0.1'), null);
    t.equal(guard.vet('169.254.1.1'), null);
    for (const address of METADATA) {
        t.equal(guard.vet(address), 'a cloud metadata address', address);
        t.equal(guard.vet(address, 'friend.example'), 'a cloud metadata address', address);
    }

    for (const name of ['metadata', 'metadata.google.internal', 'METADATA.GOOGLE.INTERNAL.', 'instance-data', 'metadata.goog']) {
        t.equal(guard.vetHost(name), 'the name of a cloud metadata service', name);
    }
});

t.test('refuses names that always lead inside', async (t) => {
    for (const name of ['localhost', 'localhost.', 'a.LOCALHOST', 'printer.local', 'x.internal', 'nas.home.arpa', 'abc.onion']) {
        t.equal(closed.vetHost(name), 'an internal name', name);
    }

    for (const name of ['example.com', 'notlocalhost', 'local.example.com', 'internal.example']) {
        t.equal(closed.vetHost(name), null, name);
    }

    t.equal(closed.vetHost('::1'), 'a loopback address');
});

t.test('names the entry of the policy that is wrong', async (t) => {
    const wrong = [
        '10.0.0.0/33',
        '::/129',
        '10.0.0/8',
        'fe80::%1/64',
        '1.2.3',
        '0x7f.1',
        '::ffff:10.0.0.0/104',
        '',
        ' ',
        '*.example.com',
        'a b',
        'http://x',
        'x:80',
        'user@x',
        'x/y',
        'x?',
        '-x.com',
        'metadata.google.internal',
        '10.0.0.0/8/8',
        '10.0.0.0/-1',
        null,
        7,
    ];
    for (const entry of wrong) {
        t.throws(
            () => egressGuard({ allow: ['10.0.0.0/8', entry as string] }),
            { code: 'MISCONFIGURED', field: 'allow[1]', message: /^Entry 2 / },
            String(entry),
        );
    }

    t.throws(() => egressGuard({ allow: '10.0.0.0/8' as unknown as string[] }), { code: 'MISCONFIGURED' });
});

const v4 = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255));
const hex = (high: number, low: number): string => ((high << 8) | low).toString(16);
type Octets = readonly [number, number, number, number];

/** All ways in which an IPv4 address is written into an IPv6 address. */
const EMBEDDINGS: Readonly<Record<string, (octets: Octets) => string>> = {
    mapped: ([a, b, c, d]) => `::ffff:${hex(a, b)}:${hex(c, d)}`,
    compatible: ([a, b, c, d]) => `::${hex(a, b)}:${hex(c, d)}`,
    siit: ([a, b, c, d]) => `::ffff:0:${hex(a, b)}:${hex(c, d)}`,
    nat64: ([a, b, c, d]) => `64:ff9b::${hex(a, b)}:${hex(c, d)}`,
    'local nat64': ([a, b, c, d]) => `64:ff9b:1::${hex(a, b)}:${hex(c, d)}`,
    'local nat64 /48': ([a, b, c, d]) => `64:ff9b:1:${hex(a, b)}:${hex(0, c)}:${hex(d, 0)}:0:0`,
    'local nat64 /64': ([a, b, c, d]) => `64:ff9b:1:0:${hex(0, a)}:${hex(b, c)}:${hex(d, 0)}:0`,
    '6to4': ([a, b, c, d]) => `2002:${hex(a, b)}:${hex(c, d)}::1`,
    teredo: ([a, b, c, d]) => `2001:0:808:808:0:0:${hex(a ^ 255, b ^ 255)}:${hex(c ^ 255, d ^ 255)}`,
    'teredo server': ([a, b, c, d]) => `2001:0:${hex(a, b)}:${hex(c, d)}:0:0:f7f7:f7f7`,
    isatap: ([a, b, c, d]) => `2a00:1::5efe:${hex(a, b)}:${hex(c, d)}`,
    'isatap, universal': ([a, b, c, d]) => `2a00:1::200:5efe:${hex(a, b)}:${hex(c, d)}`,
    'nat64 under a prefix of their own': ([a, b, c, d]) => `2a00:64::${hex(a, b)}:${hex(c, d)}`,
};

t.test('judges an embedded address no milder than the address itself', async () => {
    const open = egressGuard({ allow: ['::/0'] });
    const judgedInside = Object.entries(EMBEDDINGS).filter(([name]) => !/own|\/48|\/64/.test(name));
    fc.assert(
        fc.property(v4, fc.constantFrom(...judgedInside), (octets, [, embed]) => {
            const inner = closed.vet(octets.join('.'));
            const outer = embed(octets);
            return isIPv6(outer) && (inner === null || (closed.vet(outer) !== null && open.vet(outer) !== null));
        }),
        { numRuns: 2000 },
    );
});

t.test('finds a metadata address in every embedding, whatever is open', async (t) => {
    const open = egressGuard({ allow: ['::/0', '0.0.0.0/0'] });
    for (const address of METADATA.filter((text) => !isIPv6(text))) {
        const octets = address.split('.').map(Number) as unknown as Octets;
        for (const [name, embed] of Object.entries(EMBEDDINGS)) {
            t.equal(open.vet(embed(octets)), 'a cloud metadata address', `${address} ${name}`);
        }
    }
});

t.test('allows nothing outside the global unicast space', async () => {
    const groups = fc.array(fc.nat(0xffff), { minLength: 8, maxLength: 8 });
    fc.assert(
        fc.property(groups, ([first = 0, ...rest]) => {
            const outside = (first & 0x1fff) | ((first & 0xe000) === 0x2000 ? 0x4000 : first & 0xe000);
            const address = [outside, ...rest].map((group) => group.toString(16)).join(':');
            return closed.vet(address) !== null;
        }),
    );
});

t.test('opens an address on the given port only', async (t) => {
    const guard = egressGuard({ allow: ['127.0.0.1:8080', '[::1]:9090'] });
    t.equal(guard.vet('127.0.0.1', undefined, 8080), null);
    t.match(guard.vet('127.0.0.1', undefined, 8081), /loopback/);
    t.match(guard.vet('127.0.0.2', undefined, 8080), /loopback/);
    t.match(guard.vet('127.0.0.1'), /loopback/);
    t.equal(guard.vetHost('::1', 9090), null);
    t.match(guard.vetHost('::1', 8080), /loopback/);
});

t.test('refuses a port that is none', async (t) => {
    t.doesNotThrow(() => egressGuard({ allow: ['*:25'] }));
    for (const entry of [
        '*:0',
        '*:65536',
        '*:',
        '*:smtp',
        '127.0.0.1:0',
        '127.0.0.1:65536',
        '10.0.0.0/8:80',
        '[127.0.0.1]:',
        '[nonsense]:80',
    ]) {
        t.throws(() => egressGuard({ allow: [entry] }), { code: 'MISCONFIGURED', field: 'allow[0]' }, entry);
    }
});
