import { randomUUID } from 'node:crypto';
import { mock } from 'node:test';
import t, { type Test } from 'tap';
import type { DispatchResult } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { dispatcher } from '../../../../lib/webhooks/dispatching/dispatcher.ts';
import { lookoutOf, type Outlook } from '../../../../lib/webhooks/dispatching/outlook.ts';

const QUIET: Outlook = { settings: 1, accepted: 7, inFlight: false, replays: false, notices: false };
const NOTHING: DispatchResult = { handedOut: [], waitsFor: [], nextDueIn: null };

/** A dispatcher whose time is set, which asks a store that counts; `pass` lets time go by, in which a heartbeat comes every two seconds. */
function asking(
    t: Test,
    { result = NOTHING, isListening = true }: { readonly result?: DispatchResult; readonly isListening?: boolean } = {},
) {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    const clock = { now: 1_000 };
    const asked = { dispatch: 0, sweep: 0, replays: 0 };
    const store = { outlook: QUIET, result };
    const lookout = lookoutOf(() => clock.now);
    const dispatching = dispatcher({
        deliveries: {
            listen: () => ({ ready: Promise.resolve(), isListening: () => isListening, close: async () => {} }),
            dispatch: async () => {
                asked.dispatch += 1;
                return store.result;
            },
            sweep: async () => {
                asked.sweep += 1;
                return { lost: [], poisoned: [] };
            },
            replays: {
                advance: async () => {
                    asked.replays += 1;
                    return false;
                },
            },
        },
        queue: { add: async () => undefined },
        lookout,
        monotonic: () => clock.now,
        window: 400,
        rate: null,
        breakerAfter: 10,
        readAhead: async () => {},
        onError: (error: Error) => t.fail(error.message),
    } as unknown as Parameters<typeof dispatcher>[0]);
    t.teardown(() => mock.timers.reset());

    async function pass(seconds: number): Promise<typeof asked> {
        const before = { ...asked };
        for (let left = seconds * 10; left > 0; left -= 1) {
            clock.now += 100;
            if (clock.now % 2_000 === 0) {
                lookout.heard(store.outlook, clock.now);
            }
            mock.timers.tick(100);
            await new Promise(setImmediate);
        }
        return { dispatch: asked.dispatch - before.dispatch, sweep: asked.sweep - before.sweep, replays: asked.replays - before.replays };
    }

    dispatching.start();
    t.teardown(() => dispatching.stop());
    return { dispatching, pass, store, lookout };
}

t.test('looks every five seconds where the store has told that there is nothing to do', async (t) => {
    const { pass } = asking(t);
    await pass(20);
    t.strictSame(await pass(60), { dispatch: 12, sweep: 0, replays: 0 });
});

t.test('looks each second where commits are not heard, and sweeps only while something is in flight', async (t) => {
    const { pass, store } = asking(t, { isListening: false });
    await pass(20);
    t.strictSame(await pass(20), { dispatch: 20, sweep: 0, replays: 0 });
    store.outlook = { ...QUIET, inFlight: true };
    await pass(2);
    t.strictSame(await pass(20), { dispatch: 20, sweep: 20, replays: 0 });
});

t.test('looks and sweeps each second while anything is in flight', async (t) => {
    const { pass, store } = asking(t);
    store.outlook = { ...QUIET, inFlight: true };
    await pass(20);
    t.strictSame(await pass(20), { dispatch: 20, sweep: 20, replays: 0 });
});

t.test('looks each second once the store has not been heard of for three', async (t) => {
    const { pass, lookout } = asking(t);
    await pass(20);
    lookout.heard = () => {};
    await pass(4);
    const { dispatch, sweep } = await pass(10);
    t.strictSame({ dispatch, sweep }, { dispatch: 10, sweep: 10 });
});

t.test('looks when the first of what waits is due', async (t) => {
    const { pass, store } = asking(t, { result: { ...NOTHING, nextDueIn: 2_500 } });
    await pass(20);
    t.equal((await pass(30)).dispatch, 10);
    store.result = { handedOut: [], waitsFor: [] };
    await pass(4);
    t.equal((await pass(10)).dispatch, 10, 'something is due, for which there is no room');
});

t.test('looks each second for a while where another process has accepted: its transaction may be open', async (t) => {
    const { pass, store } = asking(t);
    await pass(20);
    store.outlook = { ...QUIET, accepted: 8 };
    await pass(2);
    t.equal((await pass(9)).dispatch, 9);
    await pass(5);
    t.equal((await pass(50)).dispatch, 10);
});

t.test('looks and sweeps after a hand-out and after the end of an attempt, until the store has been heard of anew', async (t) => {
    const { pass, dispatching } = asking(t);
    await pass(21);
    dispatching.add([
        { deliveryId: randomUUID(), exporterId: 'e', collector: 'default', attempt: 1, singleAttempt: false, reservation: null },
    ]);
    t.strictSame(await pass(1), { dispatch: 1, sweep: 1, replays: 0 });
    await pass(6);
    dispatching.attemptEnded({ id: 'e', ordered: false }, 3);
    t.strictSame(await pass(1), { dispatch: 1, sweep: 0, replays: 0 });
});

t.test('sweeps, and looks for replays, whatever the store has told when it is asked to', async (t) => {
    const { pass, dispatching } = asking(t);
    await pass(20);
    dispatching.sweep();
    dispatching.replay();
    const { sweep, replays } = await pass(1);
    t.strictSame({ sweep, replays }, { sweep: 1, replays: 1 });
});
