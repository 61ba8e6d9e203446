import t from 'tap';
import { timeSlice } from '../../lib/clock.ts';

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
