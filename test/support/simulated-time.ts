import { setImmediate } from 'node:timers/promises';
import type { Test } from 'tap';

interface Timer {
    at: number;
    /** Milliseconds until it runs again, null for one that runs once. */
    readonly every: number | null;
    run(): void;
}

/** Time that passes when a test lets it, for timers too; everything that is due happens in its order. Milliseconds since it began. */
export interface SimulatedTime {
    readonly now: () => number;
    readonly sleep: (milliseconds: number) => Promise<void>;
    advance(milliseconds: number): Promise<void>;
    /** Lets time pass until the promise is settled, in steps of 5 ms. */
    finish<T>(promise: Promise<T>): Promise<T>;
}

/** Replaces `setInterval` and `setTimeout` until the test ends. */
export function simulatedTime(t: Test): SimulatedTime {
    const timers = new Set<Timer>();
    let now = 0;

    function arm(run: () => void, delay: number, every: number | null): Timer {
        const timer = { at: now + delay, every, run, unref: () => timer };
        timers.add(timer);
        return timer;
    }

    async function advance(milliseconds: number): Promise<void> {
        const end = now + milliseconds;
        await setImmediate();
        for (let timer = next(timers, end); timer !== undefined; timer = next(timers, end)) {
            now = timer.at;
            timers.delete(timer);
            if (timer.every !== null) {
                timer.at += timer.every;
                timers.add(timer);
            }
            timer.run();
            // What follows from it needs no time of its own: it is all microtasks.
            await setImmediate();
        }
        now = end;
    }

    const { setInterval, clearInterval, setTimeout, clearTimeout } = globalThis;
    Object.assign(globalThis, {
        setInterval: (run: () => void, every: number) => arm(run, every, every),
        clearInterval: (timer: Timer) => timers.delete(timer),
        setTimeout: (run: () => void, delay: number) => arm(run, delay, null),
        clearTimeout: (timer: Timer) => timers.delete(timer),
    });
    t.teardown(() => Object.assign(globalThis, { setInterval, clearInterval, setTimeout, clearTimeout }));

    return {
        now: () => now,
        sleep: (milliseconds) => new Promise((resolve) => arm(resolve, milliseconds, null)),
        advance,

        async finish(promise) {
            let settled = false;
            const done = () => {
                settled = true;
            };
            promise.then(done, done);
            for (await setImmediate(); !settled; ) {
                await advance(5);
            }
            return promise;
        },
    };
}

/** The first that is due by then; of several at once the one that was armed first. */
function next(timers: ReadonlySet<Timer>, end: number): Timer | undefined {
    return [...timers].reduce<Timer | undefined>((first, timer) => {
        return timer.at <= end && (first === undefined || timer.at < first.at) ? timer : first;
    }, undefined);
}
