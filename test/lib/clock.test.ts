import t from 'tap';
import { aheadOf, timeSlice } from '../../lib/clock.ts';

t.test('work yields to the event loop when its time slice is over, and not before', async (t) => {
    let now = 0;
    let turns = 0;
    const yieldIfDue = timeSlice(() => now);
    for (const [time, due] of [
        [0, false],
        [1.9, false],
        [2, true],
        [3.9, false],
        [4, true],
    ] as const) {
        now = time;
        const before = turns;
        setImmediate(() => {
            turns += 1;
        });
        const pause = yieldIfDue();
        t.equal(pause !== null, due, `after ${time} ms`);
        await pause;
        t.equal(turns > before, due, `others had a turn after ${time} ms`);
    }
});

t.test('a clock is ahead of another by what the time between question and answer leaves no doubt of', async (t) => {
    const ahead = (asked: number, other: number, answered: number) => aheadOf(new Date(other), asked, answered);
    t.equal(ahead(1_000, 1_500, 3_000), 0);
    t.equal(ahead(1_000, 900, 3_000), 100);
    t.equal(ahead(1_000, 3_200, 3_000), -200);
});
