import t from 'tap';
import { batchNumbers } from '../../../../adapters/postgres/imports/batch-numbers.ts';

t.test('tells many addresses apart, whichever number each has been given last', async (t) => {
    const numbers = batchNumbers();
    const addresses = Array.from({ length: 300_000 }, (_, index) =>
        index % 2 === 0 ? `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}` : `2001:db8::${index.toString(16)}`,
    );
    const missing = addresses.filter((address, index) => {
        const isNew = numbers.get(address) === undefined;
        numbers.set(address, index);
        return !isNew;
    });
    for (const [index, address] of addresses.entries()) {
        if (index % 5 === 0) {
            numbers.set(address, 0);
        }
    }

    t.same(missing, []);
    t.same(
        addresses.filter((address, index) => numbers.get(address) !== (index % 5 === 0 ? 0 : index)),
        [],
    );
    t.equal(numbers.get('192.0.2.7'), undefined);
});
