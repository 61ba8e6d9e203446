import { setTimeout as wait } from 'node:timers/promises';
import t from 'tap';
import { parallel } from '../../../../lib/records/capture/parallel.ts';
import { collect } from '../../../support/collect.ts';

/** Work that nobody finishes but the signal; it counts what is under way. */
function endless(): { readonly count: () => number; work(item: number, signal: AbortSignal): Promise<number> } {
    let underWay = 0;
    return {
        count: () => underWay,
        work: (_item, signal) => {
            underWay += 1;
            return new Promise((_resolve, reject) => {
                signal.addEventListener('abort', () => {
                    // what is aborted takes a while to end
                    setImmediate(() => {
                        underWay -= 1;
                        reject(signal.reason);
                    });
                });
            });
        },
    };
}

t.test('gives every result, as they come in', async (t) => {
    let open = (): void => {};
    const opened = new Promise<void>((resolve) => {
        open = resolve;
    });
    const work = async (item: number): Promise<number> => {
        await (item === 1 ? opened : undefined);
        if (item === 3) {
            open();
        }

        return item;
    };
    t.same(await collect(parallel([1, 2, 3], work, { concurrency: 2 })), [2, 3, 1]);
    t.same(await collect(parallel([], work, { concurrency: 2 })), []);
});

t.test('takes from the source only what there is room for', async (t) => {
    let taken = 0;
    let most = 0;
    let underWay = 0;
    function* source(): Generator<number> {
        for (; taken < 500; taken += 1) {
            yield taken;
        }
    }
    const work = async (item: number): Promise<number> => {
        underWay += 1;
        most = Math.max(most, underWay);
        await wait(0);
        underWay -= 1;
        return item;
    };
    let given = 0;
    for await (const _ of parallel(source(), work, { concurrency: 7 })) {
        given += 1;
        t.ok(taken - given <= 7, 'no further ahead than that');
    }

    t.equal(given, 500);
    t.equal(most, 7);
});

t.test('ends the work and the source when the iteration is left', async (t) => {
    const { count, work } = endless();
    let closed = false;
    async function* source(): AsyncGenerator<number> {
        try {
            for (let item = 0; ; item += 1) {
                yield item;
            }
        } finally {
            closed = true;
        }
    }
    const some = async (item: number, signal: AbortSignal): Promise<number> => (item === 2 ? item : work(item, signal));
    for await (const item of parallel(source(), some, { concurrency: 5 })) {
        t.equal(item, 2);
        break;
    }

    t.equal(count(), 0);
    t.ok(closed);
});

t.test('ends with the reason of its signal, also while the source is silent', async (t) => {
    const { count, work } = endless();
    const stop = new AbortController();
    async function* source(): AsyncGenerator<number> {
        yield 1;
        stop.abort(new Error('enough'));
        await new Promise(() => {});
    }
    await t.rejects(collect(parallel(source(), work, { concurrency: 5, signal: stop.signal })), { message: 'enough' });
    t.equal(count(), 0);
    await t.rejects(
        collect(parallel([1], work, { concurrency: 5, signal: stop.signal })),
        { message: 'enough' },
        'a signal that was aborted before',
    );
});

t.test('gives what was under way before a failure of the source', async (t) => {
    function* source(): Generator<number> {
        yield 1;
        yield 2;
        throw new Error('no more');
    }
    const found: number[] = [];
    const results = parallel(source(), async (item) => wait(5, item), { concurrency: 5 });
    await t.rejects(
        (async () => {
            for await (const item of results) {
                found.push(item);
            }
        })(),
        { message: 'no more' },
    );
    t.same(found, [1, 2]);
});

t.test('ends the rest when a piece of work fails', async (t) => {
    const { count, work } = endless();
    const some = async (item: number, signal: AbortSignal): Promise<number> => {
        if (item === 3) {
            throw new Error('broken');
        }

        return work(item, signal);
    };
    await t.rejects(collect(parallel([1, 2, 3, 4], some, { concurrency: 5 })), { message: 'broken' });
    t.equal(count(), 0);
});

t.test('lets others have a turn when neither source nor work ever wait', async (t) => {
    let told = false;
    setImmediate(() => {
        told = true;
    });
    const startedAt = performance.now();
    function* source(): Generator<number> {
        for (let item = 0; !told && performance.now() - startedAt < 5000; item += 1) {
            yield item;
        }
    }
    await collect(parallel(source(), async (item) => item, { concurrency: 5 }));
    t.ok(told);
});
