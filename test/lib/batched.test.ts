import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { batched, batchesOf, readyBatches } from '../../lib/batched.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { collect } from '../support/collect.ts';

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

t.test('runs who comes during a run beside it, as far as that many may run', async (t) => {
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

t.test('runs together what comes in the same moment, where it shall', async (t) => {
    const runs: number[][] = [];
    const { add } = readyBatches<number, number>(
        async (items) => {
            runs.push([...items]);
            return items;
        },
        (waiting) => waiting.slice(0, 4),
        { runs: 2, sharesMoment: true },
    );
    await Promise.all([1, 2, 3, 4, 5].map(add));
    t.strictSame(runs, [[1, 2, 3, 4], [5]]);
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

t.test('runs what may be run, in the order that is wanted, and the rest when told to', async (t) => {
    const runs: number[][] = [];
    let most = 5;
    const { add, proceed } = readyBatches<number, number>(
        async (items) => {
            runs.push([...items]);
            return items;
        },
        (waiting) => waiting.filter(({ item }) => item <= most).sort((a, b) => b.item - a.item),
    );
    const results = Promise.all([1, 7, 3, 9, 5].map(add));
    await add(2);
    await turn();
    proceed();
    t.strictSame(runs, [[1], [5, 3, 2]]);
    most = 8;
    proceed();
    await add(4);
    t.strictSame(runs.slice(2), [[7], [4]]);
    await turn();
    most = 10;
    proceed();
    t.strictSame(await results, [1, 7, 3, 9, 5]);
});

t.test('rejects all that wait when it cannot be said which may be run, and goes on', async (t) => {
    let failure: Error | null = new Error('The clock has stopped');
    const { add } = readyBatches<number, number>(
        async (items) => items,
        (waiting) => {
            if (failure !== null) {
                throw failure;
            }
            return waiting;
        },
    );
    await t.rejects(add(1), failure);
    failure = null;
    t.equal(await add(2), 2);
});

/** Runs that end when they are told to, and of items alike one at a time. */
function slowRuns(t: Test) {
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    const runs: number[][] = [];
    const ends: (() => void)[] = [];
    const { add } = readyBatches<number, number>(
        async (items) => {
            runs.push([...items]);
            await new Promise<void>((resolve) => ends.push(resolve));
            return items;
        },
        (waiting, underWay) => {
            const busy = Array.from(underWay, ({ item }) => item);
            return waiting.filter(({ item }) => !busy.includes(item)).slice(0, 2);
        },
        { runs: 1, silentAfter: 1_000, runsWithSilent: 3 },
    );
    const end = async (index: number): Promise<void> => {
        ends[index]?.();
        await turn();
    };
    return { add, runs, end };
}

t.test('takes another lane beside a run that is silent, as many as it may', async (t) => {
    const { add, runs, end } = slowRuns(t);
    const results = Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(add));
    mock.timers.tick(999);
    t.strictSame(runs, [[1]], 'what is only slow is shared');
    mock.timers.tick(1);
    t.strictSame(runs, [[1], [2, 3]]);
    mock.timers.tick(1_000);
    mock.timers.tick(1_000);
    t.strictSame(runs, [[1], [2, 3], [4, 5]], 'and no more');

    await end(1);
    t.strictSame(runs.slice(3), [[6, 7]], 'one that is heard of goes on');
    await end(0);
    t.strictSame(runs.slice(4), [], 'beside it none does, as long as it is not silent itself');
    for (const index of [2, 3, 4]) {
        await end(index);
    }
    t.strictSame(await results, [1, 2, 3, 4, 5, 6, 7, 8]);
});

t.test('keeps what is alike out of other runs', async (t) => {
    const { add, runs, end } = slowRuns(t);
    const results = Promise.all([1, 1, 2].map(add));
    mock.timers.tick(1_000);
    t.strictSame(runs, [[1], [2]]);
    await end(1);
    t.strictSame(runs, [[1], [2]]);
    await end(0);
    t.strictSame(runs, [[1], [2], [1]]);
    await end(2);
    t.strictSame(await results, [1, 1, 2]);
});

const limits = { maxItems: 3, maxSize: 100, sizeOf: (item: number) => item };

async function* each(items: readonly number[]): AsyncGenerator<number> {
    yield* items;
}

t.test('makes batches that keep the limits, in order', async (t) => {
    t.same(await collect(batchesOf(each([1, 2, 3, 4, 5]), limits)), [
        [1, 2, 3],
        [4, 5],
    ]);
    t.same(await collect(batchesOf(each([60, 50, 200, 1]), limits)), [[60, 50], [200], [1]]);
    t.same(await collect(batchesOf(each([]), limits)), []);
});

t.test('does not wait for a batch to fill', async (t) => {
    let more: (() => void) | undefined;
    async function* trickle(): AsyncGenerator<number> {
        yield 1;
        await new Promise<void>((resolve) => {
            more = resolve;
        });
        yield 2;
    }

    const batches = batchesOf(trickle(), limits);
    t.same((await batches.next()).value, [1]);
    more?.();
    t.same((await batches.next()).value, [2]);
    t.equal((await batches.next()).done, true);
});

t.test('reads on while a batch is worked on, but only one batch', async (t) => {
    let given = 0;
    async function* counted(): AsyncGenerator<number> {
        for (;;) {
            given += 1;
            yield 1;
        }
    }

    const batches = batchesOf(counted(), limits);
    await batches.next();
    await new Promise(setImmediate);
    t.equal(given, 6);
    await batches.return();
    await new Promise(setImmediate);
    t.equal(given, 6);
});

t.test('gives what came before the source failed, then fails', async (t) => {
    async function* broken(): AsyncGenerator<number> {
        yield 1;
        throw new Error('the source broke');
    }

    const batches = batchesOf(broken(), limits);
    t.same((await batches.next()).value, [1]);
    await t.rejects(batches.next(), { message: 'the source broke' });
});
