import { uptime } from 'node:os';
import { setImmediate } from 'node:timers/promises';

/** The time now. Passed in, so that schedules, expiry and jitter are tested without sleeping. */
export type Clock = () => Date;

/** The clock of the machine. */
export const systemClock: Clock = () => new Date();

/** Calls `task` every so many milliseconds until the returned function is called. */
export type Ticker = (task: () => void, milliseconds: number) => () => void;

/** The timer of the machine, which keeps no process from ending. */
export const timer: Ticker = (task, milliseconds) => {
    const handle = setInterval(task, milliseconds).unref();
    return () => clearInterval(handle);
};

/** What a machine tells of its time, in milliseconds. */
export interface MachineClocks {
    /** Only goes forward, and may stand still while the machine is suspended. */
    running(): number;
    /** Goes on while the machine is suspended, and may be set meanwhile. */
    wall(): number;
    /** Goes on while the machine is suspended, is never set, and costs a system call. */
    uptime(): number;
}

/** Intervals that are those of the rest of the world. */
export interface SteadyClock {
    /** Milliseconds that only go forward, and that go on while the machine is suspended. */
    now(): number;
    /** Milliseconds for which the machine has been suspended, as far as {@link now} has noticed. */
    slept(): number;
}

/** By how many milliseconds a clock may jump before it is looked at whether the machine was suspended. */
const JUMP = 100;

/** A machine sleeps for more milliseconds than this. */
const SHORTEST_SLEEP = 1_000;

/**
 * Milliseconds by which the time since the start may be told too low: Linux, where the running clock stands still, tells it in hundredths of a second. A sleep
 * is rather taken for longer than it was: what has to begin in time begins no later.
 */
const TOLD_IN = 20;

/** @param clocks Those of the machine by default. */
export function steadyClock({ running, wall, uptime }: MachineClocks = MACHINE): SteadyClock {
    let aheadOfRunning = uptime() - running();
    let ahead = wall() - running();
    let slept = 0;

    return {
        now() {
            const ran = running();
            const jumped = wall() - ran - ahead;
            if (Math.abs(jumped) > JUMP) {
                ahead += jumped;
                const missed = uptime() - ran - aheadOfRunning;
                if (missed > SHORTEST_SLEEP) {
                    aheadOfRunning += missed;
                    slept += missed + TOLD_IN;
                }
            }
            return ran + slept;
        },

        slept: () => slept,
    };
}

/** As they are now: the embedded database's thread has a clock of its own in the place of `Date.now`. */
const MACHINE: MachineClocks = { running: performance.now.bind(performance), wall: Date.now, uptime: () => uptime() * 1_000 };

/** Of the machine, for what is reckoned against other machines' time. Timers of the process stand still while it is suspended. */
export const machineClock: SteadyClock = steadyClock();

const SLICE_MS = 2;

/**
 * Work that never waits keeps the event loop to itself; with a time slice it yields every 2 ms.
 *
 * @param now Milliseconds since any moment.
 * @returns To be called between two steps of the work: null while the slice lasts, else a promise that resolves after the event loop
 *     has run and a new slice has begun.
 */
export function timeSlice(now: () => number = () => performance.now()): () => Promise<void> | null {
    let startedAt = now();

    return () => {
        if (now() - startedAt < SLICE_MS) {
            return null;
        }

        return setImmediate().then(() => {
            startedAt = now();
        });
    };
}

/**
 * By how many milliseconds the clock of this process is ahead of another one, less than 0 when it is behind: the least of what may be, since that one was
 * read at some time between question and answer, and the answer may have been long on its way.
 *
 * @param asked By the clock of this process, as `Date.now()` has it, and so `answered`.
 */
export function aheadOf(other: Date, asked: number, answered: number): number {
    const [least, most] = [asked - other.getTime(), answered - other.getTime()];
    return Math.max(least, Math.min(most, 0));
}
