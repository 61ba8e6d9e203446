import fc from 'fast-check';
import t from 'tap';
import { type AddressRange, addressRange, blocksIn, inRanges } from '../../lib/address-range.ts';
import { parseAddress } from '../../lib/addresses.ts';

const ALL = 16;

t.test('tells how many addresses a range has', async (t) => {
    const counts: readonly [text: string, addresses: number][] = [
        ['192.0.2.7', 1],
        ['192.0.2.0/24', 256],
        ['10.0.255.250-10.1.0.5', 12],
        ['0.0.0.0/0', 2 ** 32],
        ['2001:db8::7', 1],
        ['2001:db8::ff-2001:db8::100', 2],
        ['2001:db8::/120', 256],
        ['2001:db8::/64', 2 ** 64],
        ['2001:db8::/56', 2 ** 72],
        ['::/0', 2 ** 128],
    ];
    for (const [text, addresses] of counts) {
        t.equal(blocksIn(addressRange(text), ALL), addresses, text);
    }
});

t.test('tells in how many blocks a range lies', async (t) => {
    for (const [text, bytes, blocks] of [
        ['10.0.0.0/16', 2, 1],
        ['10.0.255.255-10.1.0.0', 2, 2],
        ['10.0.0.0/8', 2, 256],
        ['10.0.0.1-11.0.0.1', 2, 257],
        ['2001:db8::/64', 6, 1],
        ['2001:db8::/40', 6, 256],
    ] as const) {
        t.equal(blocksIn(addressRange(text), bytes), blocks, text);
    }
});

/** One comparison after the other, of numbers; those of version 6 behind those of version 4. */
function isInOneOf(text: unknown, ranges: readonly AddressRange[]): boolean {
    const address = numberOf(String(text));
    return ranges.some(({ first, last }) => {
        const [from, to] = [numberOf(first), numberOf(last)];
        return address !== null && from !== null && to !== null && from <= address && address <= to;
    });
}

function numberOf(text: string): bigint | null {
    const bytes = parseAddress(text)?.toByteArray();
    return bytes === undefined ? null : bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), bytes.length === 4 ? 0n : 1n);
}

const near = fc.integer({ min: 0, max: 300 }).chain((number) => {
    const end = number.toString(16);
    return fc.constantFrom(
        `10.0.${number >> 8}.${number & 255}`,
        `2001:db8::${end}`,
        `::ffff:10.0.${number >> 8}.${number & 255}`,
        `::${end}`,
    );
});
const arbitraryAddress = fc.oneof(near, near, fc.ipV4(), fc.ipV6());
const arbitraryText = fc.oneof(
    { weight: 9, arbitrary: arbitraryAddress },
    { weight: 1, arbitrary: fc.constantFrom('', 'x', 'fe80::1%eth0', '[::1]', '010.0.0.1', '10.0.0', ' 10.0.0.1') },
);
const arbitraryRange = fc.oneof(
    fc.record({ first: arbitraryText, last: arbitraryText }),
    arbitraryAddress.map((address) => ({ first: address, last: address })),
    fc.tuple(arbitraryAddress, fc.integer({ min: 0, max: 32 })).map(([address, bits]) => addressRange(`${address}/${bits}`)),
);

t.test('tells of any text and any ranges what one comparison after the other tells', (t) => {
    const asked = fc.array(fc.oneof(arbitraryText, fc.constantFrom(null, undefined, 7)), { minLength: 1, maxLength: 40 });
    fc.assert(
        fc.property(fc.array(arbitraryRange, { maxLength: 40 }), asked, (ranges, texts) => {
            const isInRanges = inRanges(ranges);
            const bounds = ranges.flatMap(({ first, last }) => [first, last]);
            return [...texts, ...bounds].every((text) => isInRanges(text) === isInOneOf(text, ranges));
        }),
        { numRuns: 300 },
    );
    t.end();
});

t.test('has the bounds of ranges in them, and no zones', (t) => {
    const isIn = inRanges(['10.0.0.0/30', '10.0.0.2-10.0.0.9', '10.0.0.11', 'fe80::/10'].map(addressRange));
    const texts = [
        '9.255.255.255',
        '10.0.0.0',
        '10.0.0.4',
        '10.0.0.9',
        '10.0.0.10',
        '10.0.0.11',
        '::ffff:10.0.0.4',
        'fe80::1',
        'fe80::1%eth0',
    ];
    t.same(texts.filter(isIn), ['10.0.0.0', '10.0.0.4', '10.0.0.9', '10.0.0.11', 'fe80::1']);
    t.equal(inRanges([])('10.0.0.0'), false);
    t.end();
});
