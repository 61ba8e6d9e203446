import t from 'tap';
import { batched } from '../../lib/batched.ts';
import { ScanwireError } from '../../lib/errors.ts';

t.test('runs a lone item at once and what arrives meanwhile together', async (t) => {
    const runs: number[][] = [];
    const double = batched<number, number>(async (items) => {
        runs.push([...items]);
        return items.map((item) => item * 2);
    }, 3);
    t.strictSame(await Promise.all([1, 2, 3, 4, 5].map(double)), [2, 4, 6, 8, 10]);
    t.strictSame(runs, [[1], [2, 3, 4], [5]]);
    t.equal(await double(6), 12);
});

t.test('runs who comes during a run beside it, as far as there are lanes', async (t) => {
    const runs: number[][] = [];
    let most = 0;
    let running = 0;
    const double = batched<number, number>(
        async (items) => {
            runs.push([...items]);
            running += 1;
            most = Math.max(most, running);
            await new Promise(setImmediate);
            running -= 1;
            return items.map((item) => item * 2);
        },
        3,
        2,
    );
    t.strictSame(await Promise.all([1, 2, 3, 4, 5, 6].map(double)), [2, 4, 6, 8, 10, 12]);
    t.strictSame(runs, [[1], [2], [3, 4, 5], [6]]);
    t.equal(most, 2);
});

t.test('isolates the item that fails', async (t) => {
    const check = batched<number, number>(async (items) => {
        if (items.includes(3)) {
            throw new Error('no threes');
        }

        return items;
    }, 10);
    const results = await Promise.allSettled([1, 2, 3, 4].map(check));
    t.strictSame(
        results.map(({ status }) => status),
        ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
    );
});

t.test('refuses all at once when the store is away', async (t) => {
    let runs = 0;
    const check = batched<number, number>(async () => {
        runs += 1;
        throw new ScanwireError('UNAVAILABLE', 'away');
    }, 10);
    const results = await Promise.allSettled([1, 2, 3, 4].map(check));
    t.ok(results.every(({ status }) => status === 'rejected'));
    t.equal(runs, 2);
});

t.test('takes what has no result into the next run, in its order', async (t) => {
    const runs: number[][] = [];
    const double = batched<number, number>(async (items) => {
        runs.push([...items]);
        return items.slice(0, 2).map((item) => item * 2);
    }, 3);
    t.strictSame(await Promise.all([1, 2, 3, 4, 5].map(double)), [2, 4, 6, 8, 10]);
    t.strictSame(runs, [[1], [2, 3, 4], [4, 5]]);
});
