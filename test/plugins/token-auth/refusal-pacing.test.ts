import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { MAX_WAITING, PER_SECOND, Refusals } from '../../../plugins/token-auth/refusal-pacing.ts';

/** A time that goes on when it is told to. */
function simulated() {
    let now = 0;
    let due: { readonly act: () => void; readonly at: number }[] = [];
    return {
        pacing: { now: () => now, later: (act: () => void, milliseconds: number) => void due.push({ act, at: now + milliseconds }) },
        async pass(milliseconds: number) {
            for (const end = now + milliseconds; now < end; ) {
                now += 1;
                const acting = due.filter(({ at }) => at <= now);
                due = due.filter(({ at }) => at > now);
                for (const { act } of acting) {
                    act();
                }
            }
            await setImmediate();
        },
    };
}

const ask = (refusals: Refusals, isThere = () => true) => {
    const asked = { answer: undefined as boolean | undefined };
    void refusals.turn(isThere).then((answer) => {
        asked.answer = answer;
    });
    return asked;
};

t.test('lets a few through at once, and then so many a second', async (t) => {
    const { pacing, pass } = simulated();
    const refusals = new Refusals(pacing);
    const all = Array.from({ length: 400 }, () => ask(refusals));
    const answered = () => all.filter(({ answer }) => answer === true).length;
    await setImmediate();
    const atOnce = answered();
    t.ok(atOnce > 0 && atOnce < PER_SECOND, `${atOnce} at once`);
    await pass(1_000);
    t.ok(Math.abs(answered() - atOnce - PER_SECOND) <= 5, `${answered()} after a second`);
    t.equal(
        all.findIndex(({ answer }) => answer === undefined),
        answered(),
        'in turn',
    );
    await pass(10_000);
    t.equal(answered(), 400);
    t.equal(await refusals.turn(() => true), true, 'and at once again');
});

t.test('turns away those for whom there is no room, and gives no turn to who has left', async (t) => {
    const { pacing, pass } = simulated();
    const refusals = new Refusals(pacing);
    let isThere = true;
    const gone = Array.from({ length: MAX_WAITING + 50 }, () => ask(refusals, () => isThere));
    await setImmediate();
    t.equal(await refusals.turn(() => true), false);
    isThere = false;
    await pass(40);
    t.ok(gone.every(({ answer }) => answer !== undefined));
    t.equal(await refusals.turn(() => true), true);
});
