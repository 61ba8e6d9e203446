/** Time that passes at once: for what waits long, and answers all the same. */
import { mock } from 'node:test';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';

/** What `performance.now` says: what timers were told has passed. */
let passed = 0;

/** Lets time stand still until it is told to pass. Undone by {@link freeTime}, or by `mock.reset()` where nothing waits any more. */
export function holdTime(): void {
    mock.timers.enable({ apis: ['setTimeout'] });
    mock.method(performance, 'now', () => passed);
}

/** Longer than what looks after all requests of a process waits for its next look. */
const LOOKED = 300;

/** Resolves when no timer of other tests in this process is pending that what is tested would wait for. Before {@link holdTime}. */
export async function timeIsFree(): Promise<void> {
    await sleep(LOOKED);
}

/** Lets what still waits come to its end, and then time go by itself again: whoever waits for a timer that was held would do so for ever. */
export async function freeTime(): Promise<void> {
    for (let looks = 0; looks < 3; looks += 1) {
        pass(60_000);
        await turns();
    }
    mock.reset();
}

/** Whatever is asked without waiting has been asked after some turns of the event loop. */
async function turns(): Promise<void> {
    for (let count = 0; count < 10; count += 1) {
        await turn();
    }
}

/** By the timer that tests let pass. */
export const wait = (milliseconds: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, milliseconds));

/** Lets so many milliseconds pass. */
export function pass(milliseconds: number): void {
    passed += milliseconds;
    mock.timers.tick(milliseconds);
}

/** An answer, and how long it took. */
export interface Timed<Answer> {
    /** Undefined, like the answer, when there was none within a minute. */
    readonly status: number | undefined;
    readonly answer: Answer | undefined;
    readonly took: number;
}

/** The status of an answer and how many milliseconds it took, as far as anybody can tell: all of them pass at once. */
export async function timed<Answer extends { readonly status: number }>(answered: Promise<Answer>): Promise<Timed<Answer>> {
    let answer: Answer | undefined;
    const answering = answered.then((given) => {
        answer = given;
    });
    let took = 0;
    for (; answer === undefined && took < 60_000; took += 100) {
        await turns();
        pass(100);
    }
    // What has not come by then never does.
    await (answer && answering);
    return { status: answer?.status, answer, took };
}
