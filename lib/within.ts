/** How long a promise is waited for. */
export interface Deadline {
    /** Milliseconds. */
    readonly timeout: number;
    /** Makes the error of a promise that is late; one that says how long was waited by default. Is told by how much the timer was late itself. */
    readonly late?: (by: number) => Error;
    /** Ends the waiting at once, with its reason. */
    readonly signal?: AbortSignal | undefined;
}

/** The promise's own result, if it comes in time; what comes later is dropped, a rejection too. */
export async function within<T>(
    promise: Promise<T>,
    { timeout, late = () => new Error(`No result within ${timeout} ms`), signal }: Deadline,
): Promise<T> {
    promise.catch(() => undefined);
    signal?.throwIfAborted();

    return await new Promise<T>((resolve, reject) => {
        const callOff = afterWait(timeout, (by) => settle(() => reject(late(by))));
        const onAbort = (): void => settle(() => reject(signal?.reason));
        const settle = (act: () => void): void => {
            callOff();
            signal?.removeEventListener('abort', onAbort);
            act();
        };

        signal?.addEventListener('abort', onAbort, { once: true });
        promise.then(
            (value) => settle(() => resolve(value)),
            (error: unknown) => settle(() => reject(error)),
        );
    });
}

/** Resolves once all have ended. A failure is reported, and lets nobody go on before the others have ended. */
export async function allEnded(parts: readonly Promise<unknown>[], onError: (error: Error) => void): Promise<void> {
    await Promise.all(parts.map((part) => part.catch(onError)));
}

/** A timer that is late by so many milliseconds was held up: the process stood still, or was busy. */
const HELD_UP = 100;
/** Turns of the event loop in which what has come meanwhile is read. The first may have begun before it came, and in a process with much else to read it takes two more. */
const TURNS = 4;

/** By so many milliseconds and more, a process stood still for too long to say that others were late. */
export const STOOD_STILL = 1_000;

/**
 * Calls back after so many milliseconds. A process that stood still has its timers before the answers that have come meanwhile: those are read
 * first, and may call it off.
 *
 * @param act Is told by how many milliseconds the timer was late.
 * @returns Calls it off.
 */
export function afterWait(milliseconds: number, act: (by: number) => void): () => void {
    const due = performance.now() + milliseconds;
    let turn: NodeJS.Immediate | undefined;
    const actIn = (turns: number, by: number): void => {
        if (turns === 0) {
            act(by);
        } else {
            turn = setImmediate(() => actIn(turns - 1, by));
        }
    };
    const timer = setTimeout(() => {
        const by = performance.now() - due;
        actIn(by < HELD_UP ? 0 : TURNS, by);
    }, milliseconds);
    return () => {
        clearTimeout(timer);
        clearImmediate(turn);
    };
}

/** Lets one side of a program wait until the other has changed something. */
export function wakeUps(): { wake(): void; change(): Promise<void> } {
    let waiting = (): void => {};
    return {
        wake: () => waiting(),
        change: () =>
            new Promise((resolve) => {
                waiting = resolve;
            }),
    };
}
