import t from 'tap';
import { paceOn } from '../../../../adapters/postgres/imports/import-slices.ts';
import { type Pace, paceOf } from '../../../../adapters/postgres/pace.ts';
import { databases } from '../databases.ts';

/** The pace where a host takes so many milliseconds, and the sizes of slices that follow each other. */
async function sizes(pace: Pace, pass: (milliseconds: number) => void, perHost: number, slices: number): Promise<readonly number[]> {
    const seen: number[] = [];
    for (let count = 0; count < slices; count += 1) {
        const hosts = pace.size();
        seen.push(hosts);
        await pace.timed(hosts, async () => pass(hosts * perHost));
    }
    return seen;
}

t.test('makes slices as large as they take 40 ms, little by little', async (t) => {
    let now = 0;
    const pace = paceOf(() => now);
    const pass = (milliseconds: number): void => {
        now += milliseconds;
    };
    t.strictSame(await sizes(pace, pass, 0.5, 3), [75, 80, 80]);
    t.strictSame(await sizes(pace, pass, 0.1, 3), [80, 150, 150], 'no more than a batch has');
    t.strictSame(await sizes(pace, pass, 0.6, 3), [150, 75, 67]);
    t.strictSame(await sizes(pace, pass, 50, 3), [67, 50, 50], 'some in any case');
    t.strictSame(await sizes(pace, pass, 0, 4), [50, 100, 150, 150]);
});

t.test('learns of the slices that are smaller than they might be', async (t) => {
    let now = 0;
    const pace = paceOf(() => now);
    await pace.timed(10, async () => {
        now += 8;
    });
    t.equal(pace.size(), 50);
});

for (const { name, open } of databases) {
    t.test(`makes a slice of a batch on ${name} as everybody waits for it, or nobody`, async (t) => {
        const { pool, stop } = await open();
        t.after(stop);
        const pace = paceOn(pool);
        const sizes = [pace.size(), await pace.timed(75, async () => pace.size())];
        t.strictSame(sizes, pool.embedded ? [75, 75] : [Infinity, Infinity]);
    });
}

t.test('hands on what the work of a slice gives, and its error', async (t) => {
    const pace = paceOf(() => 0);
    t.equal(await pace.timed(1, async () => 'done'), 'done');
    await t.rejects(
        pace.timed(1, async () => {
            throw new Error('full');
        }),
        { message: 'full' },
    );
    t.equal(pace.size(), 50);
});
