/** Time that passes at once: for what waits long, and answers all the same. */
import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';

/** What `performance.now` says: what timers were told has passed. */
let passed = 0;

/** Lets time stand still until it is told to pass. Undone by `mock.reset()`. */
export function holdTime(): void {
    mock.timers.enable({ apis: ['setTimeout'] });
    mock.method(performance, 'now', () => passed);
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
        // Whatever is asked without waiting has been asked after some turns of the event loop.
        for (let turns = 0; turns < 10; turns += 1) {
            await turn();
        }
        pass(100);
    }
    // What has not come by then never does.
    await (answer && answering);
    return { status: answer?.status, answer, took };
}
