import t from 'tap';
import { databaseClock } from '../../../adapters/pglite/database-clock.ts';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

/** A clock of the database and the two that it is made of. */
function clocks() {
    const time = { wall: Date.parse('2026-11-21T00:00:00Z'), monotonic: 5 * SECOND };
    const clock = databaseClock(
        () => time.wall,
        () => time.monotonic,
    );
    const pass = (milliseconds: number): void => {
        time.wall += milliseconds;
        time.monotonic += milliseconds;
    };
    return { time, clock, pass };
}

t.test('goes forward to the clock of the machine after a suspend, in which no monotonic time has passed', (t) => {
    const { time, clock, pass } = clocks();
    pass(HOUR);
    t.equal(clock.follow(), 0);
    time.wall += HOUR;
    t.equal(clock.now(), time.wall - HOUR);
    t.equal(clock.follow(), HOUR);
    t.equal(clock.now(), time.wall);
    pass(SECOND);
    t.equal(clock.now(), time.wall, 'and on from there');
    t.equal(clock.follow(), 0);
    t.end();
});

t.test('stays as it is where clocks differ by no more than those of two machines', (t) => {
    const { time, clock } = clocks();
    time.wall += 30 * SECOND;
    t.equal(clock.follow(), 0);
    time.wall += 1;
    t.equal(clock.follow(), 30 * SECOND + 1);
    t.end();
});

t.test('never goes back', (t) => {
    const { time, clock, pass } = clocks();
    const before = clock.now();
    time.wall -= HOUR;
    t.equal(clock.follow(), 0);
    t.equal(clock.now(), before);
    pass(SECOND);
    t.equal(clock.now(), before + SECOND);
    t.end();
});
