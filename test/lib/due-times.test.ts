import t from 'tap';
import { DueTimes } from '../../lib/due-times.ts';

const late = (): Error => new Error('late');
const never = (): Promise<never> => new Promise(() => {});
const now = (): number => performance.now();

t.test('what comes in time is as it is', async (t) => {
    const times = new DueTimes();
    t.equal(await times.within(Promise.resolve('there'), now() + 60_000, late), 'there');
    await t.rejects(times.within(Promise.reject(new Error('failed')), now() + 60_000, late), { message: 'failed' });
});

t.test('what is due is given up, and what is not is waited for', async (t) => {
    const times = new DueTimes();
    let resolve = (_: string): void => {};
    const promise = new Promise<string>((settle) => {
        resolve = settle;
    });
    const open = times.within(promise, now() + 60_000, late);
    await Promise.all([1, 2].map(() => t.rejects(times.within(never(), now() + 1, late), { message: 'late' })));
    // What is asked for after a look is looked at as well.
    await t.rejects(times.within(never(), now(), late), { message: 'late' });
    resolve('at last');
    t.equal(await open, 'at last');
});

t.test("a rejection that comes too late is nobody's", async (t) => {
    let reject = (_: Error): void => {};
    const promise = new Promise<never>((_, settle) => {
        reject = settle;
    });
    await t.rejects(new DueTimes().within(promise, now(), late), { message: 'late' });
    reject(new Error('too late'));
});
