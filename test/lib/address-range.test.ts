import t from 'tap';
import { addressRange, blocksIn } from '../../lib/address-range.ts';

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
