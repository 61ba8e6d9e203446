import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { within } from '../../lib/within.ts';

const FOREVER = new Promise<never>(() => {});
const late = (): Error => new Error('too late');

t.test('settles as the promise does while there is time', async (t) => {
    t.equal(await within(Promise.resolve(7), { timeout: 60_000, late }), 7);
    await t.rejects(within(Promise.reject(new Error('broken')), { timeout: 60_000, late }), { message: 'broken' });
});

t.test('rejects when the time is over, and drops what comes later', async (t) => {
    await t.rejects(within(FOREVER, { timeout: 1, late }), { message: 'too late' });
    await t.rejects(within(FOREVER, { timeout: 1 }), { message: 'No result within 1 ms' });
    const failing = sleep(5).then(() => {
        throw new Error('unhandled');
    });
    await t.rejects(within(failing, { timeout: 1, late }), { message: 'too late' });
    await t.rejects(failing);
});

t.test('rejects with the reason of the signal', async (t) => {
    const controller = new AbortController();
    const waiting = within(FOREVER, { timeout: 60_000, late, signal: controller.signal });
    controller.abort(new Error('not wanted any more'));
    await t.rejects(waiting, { message: 'not wanted any more' });
    await t.rejects(within(Promise.resolve(7), { timeout: 60_000, late, signal: controller.signal }), { message: 'not wanted any more' });
});

t.test('leaves neither a timer nor a listener behind', async (t) => {
    const { signal } = new AbortController();
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const waiting = within(Promise.resolve(7), { timeout: 60_000, late, signal });
    t.same([timers(), getEventListeners(signal, 'abort').length], [before + 1, 1]);
    await waiting;
    t.same([timers(), getEventListeners(signal, 'abort').length], [before, 0]);
});
