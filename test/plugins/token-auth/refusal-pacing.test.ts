import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { IN_TURN, MAX_WAITING, PER_SECOND, Refusals } from '../../../plugins/token-auth/refusal-pacing.ts';

/** A time that goes on when it is told to. */
function simulated() {
    let now = 0;
    let due: { readonly act: () => void; readonly at: number }[] = [];
    return {
        pacing: { now: () => now, later: (act: () => void, milliseconds: number) => void due.push({ act, at: now + milliseconds }) },
        async pass(milliseconds: number) {
            for (const end = now + milliseconds; ; now += 1) {
                const acting = due.filter(({ at }) => at <= now);
                due = due.filter(({ at }) => at > now);
                for (const { act } of acting) {
                    act();
                }
                if (now === end) {
                    break;
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

t.test('lets a few through in each turn, and so many a second', async (t) => {
    const { pacing, pass } = simulated();
    const refusals = new Refusals(pacing);
    const all = Array.from({ length: MAX_WAITING }, () => ask(refusals));
    const answered = () => all.filter(({ answer }) => answer === true).length;
    for (const turns of [1, 2, 3]) {
        await pass(0);
        t.equal(answered(), turns * IN_TURN);
    }
    for (let turns = 3; turns < MAX_WAITING / IN_TURN; turns += 1) {
        await pass(0);
    }
    const atOnce = answered();
    t.ok(atOnce < MAX_WAITING / 2, `${atOnce} before any time has passed`);
    t.equal(
        all.findIndex(({ answer }) => answer === undefined),
        atOnce,
        'in turn',
    );

    let refused = 0;
    for (let milliseconds = 0; milliseconds < 1_000; milliseconds += 1) {
        for (let more = 0; more < 10; more += 1) {
            void refusals
                .turn(() => true)
                .then((turn) => {
                    refused += turn ? 1 : 0;
                });
        }
        await pass(1);
        for (let turns = 0; turns < 10; turns += 1) {
            await pass(0);
        }
    }
    const inSecond = answered() - atOnce + refused;
    t.ok(Math.abs(inSecond - PER_SECOND) <= PER_SECOND / 10, `${inSecond} in a second`);
});

t.test('of a thousand at once, others get their turn after a few', async (t) => {
    const refusals = new Refusals();
    const all = Array.from({ length: MAX_WAITING }, () => ask(refusals));
    const answered = () => all.filter(({ answer }) => answer === true).length;
    for (let turns = 1; answered() < 100; turns += 1) {
        await setImmediate();
        t.ok(answered() <= turns * IN_TURN, `${answered()} in ${turns} turns`);
    }
});

t.test('turns away those for whom there is no room, and gives no turn to who has left', async (t) => {
    const { pacing, pass } = simulated();
    const refusals = new Refusals(pacing);
    let isThere = true;
    const gone = Array.from({ length: MAX_WAITING + 50 }, () => ask(refusals, () => isThere));
    await setImmediate();
    t.equal(await refusals.turn(() => true), false);
    isThere = false;
    await pass(0);
    t.ok(gone.every(({ answer }) => answer !== undefined));
    const next = ask(refusals);
    await pass(0);
    t.equal(next.answer, true, 'nobody waits for who has left');
});
