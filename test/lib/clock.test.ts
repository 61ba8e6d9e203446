import t from 'tap';
import { aheadOf, steadyClock, timeSlice } from '../../lib/clock.ts';

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

/** A machine whose clocks say so; it runs until it is suspended, or its clock is set. */
function machine() {
    const says = { running: 500, wall: 1_000_000, uptime: 70_000 };
    const clock = steadyClock({ running: () => says.running, wall: () => says.wall, uptime: () => says.uptime });
    const goOn = (milliseconds: number): void => {
        says.running += milliseconds;
        says.wall += milliseconds;
        says.uptime += milliseconds;
    };
    return { says, clock, goOn };
}

t.test('intervals go on while the machine is suspended', async (t) => {
    const { says, clock, goOn } = machine();
    const begun = clock.now();
    goOn(1_000);
    t.equal(clock.now() - begun, 1_000);
    for (const slept of [5_000, 3_600_000]) {
        const before = clock.now();
        says.wall += slept;
        says.uptime += slept - 10;
        goOn(7);
        const took = clock.now() - before;
        t.ok(took >= slept + 7 && took <= slept + 7 + 30, `${took} ms`);
    }
    t.ok(clock.slept() >= 3_605_000 && clock.slept() < 3_605_100, `${clock.slept()} ms asleep`);
    const before = clock.now();
    goOn(1_000);
    t.equal(clock.now() - before, 1_000);
});

t.test('a clock that is set, forward or back, changes no interval', async (t) => {
    const { says, clock, goOn } = machine();
    const begun = clock.now();
    for (const set of [3_600_000, -7_200_000, 150, -150]) {
        says.wall += set;
        goOn(1_000);
        clock.now();
    }
    t.equal(clock.now() - begun, 4_000);
    t.equal(clock.slept(), 0);
});
