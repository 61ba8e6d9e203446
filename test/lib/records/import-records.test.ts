import t from 'tap';
import { batchesOf } from '../../../lib/records/import-records.ts';
import { collect } from '../../support/collect.ts';

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
