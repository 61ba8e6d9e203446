import t from 'tap';
import type { HandedOut } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { leftDeliveries } from '../../../../lib/webhooks/dispatching/left-deliveries.ts';

const plain = (id: string) => ({ id, ordered: false });

/** What a process knows, by a clock that is set, and dispatches that serve these exporters and leave what waits for attempts of those. */
function knowing() {
    const clock = { now: 1_000 };
    const known = leftDeliveries(() => clock.now);
    const dispatch = (served: readonly string[] = [], waitsFor: readonly string[] = []): number | null => {
        known.dispatchBegins();
        return known.dispatchEnds({ handedOut: served.map((exporterId) => ({ exporterId }) as HandedOut), waitsFor });
    };
    return { ...known, clock, dispatch };
}

t.test('looks at once for what is left first, and ever later while it looks in vain', async (t) => {
    const { clock, noteLeft, dispatch } = knowing();
    t.equal(noteLeft(['down']), 0);
    const waits = Array.from({ length: 7 }, () => {
        dispatch();
        const wait = noteLeft(['down']);
        clock.now += wait;
        return wait;
    });
    t.strictSame(waits, [25, 50, 100, 200, 200, 200, 200]);
    t.equal(noteLeft(['down', 'other']), 0, 'of another one nothing is known');
    clock.now += 1_000;
    dispatch();
    t.equal(noteLeft(['down']), 200, 'nor is it forgotten while it is left again and again');
});

t.test('looks no later for an exporter of which nothing was left when it looked', async (t) => {
    const { noteLeft, dispatch } = knowing();
    dispatch();
    t.equal(noteLeft(['one']), 0);
});

t.test('looks at once again for one that got something, one whose attempt has ended, and one that was well for long', async (t) => {
    const { clock, noteLeft, noteAttemptEnd, dispatch } = knowing();
    noteLeft(['served', 'ended', 'old']);
    dispatch();
    t.equal(noteLeft(['served']), 25);
    dispatch(['served']);
    t.equal(noteLeft(['served']), 0);
    t.equal(noteLeft(['ended']), 25);
    noteAttemptEnd(plain('ended'), 10);
    t.equal(noteLeft(['ended']), 0);
    clock.now += 226;
    dispatch(['served']);
    t.equal(noteLeft(['old']), 0);
});

t.test('looks for what may have got the place of an attempt that has ended', async (t) => {
    const { noteLeft, noteAttemptEnd, dispatch, dispatchBegins, dispatchEnds } = knowing();
    t.equal(noteAttemptEnd(plain('one'), 400), null, 'nothing is left');
    dispatch([], ['one']);
    t.equal(noteAttemptEnd(plain('one'), 400), 10);
    t.equal(noteAttemptEnd(plain('one'), 60_000), 50, 'one that took long waits for others');
    dispatch();
    t.equal(noteAttemptEnd(plain('one'), 400), null);
    noteLeft(['one']);
    t.equal(noteAttemptEnd(plain('one'), 400), 10, 'acceptance has left something since');
    dispatchBegins();
    noteAttemptEnd(plain('one'), 400);
    t.equal(dispatchEnds({ handedOut: [], waitsFor: ['one'] }), 10, 'an end that the dispatch may not have seen');
    t.equal(noteAttemptEnd({ id: 'ordered', ordered: true }, 400), 0, 'what comes next of its order key may be due');
});
