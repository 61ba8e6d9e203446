/** How long a promise is waited for. */
export interface Deadline {
    /** Milliseconds. */
    readonly timeout: number;
    /** Makes the error of a promise that is late; one that says how long was waited by default. */
    readonly late?: () => Error;
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
        const timer = setTimeout(() => settle(() => reject(late())), timeout);
        const onAbort = (): void => settle(() => reject(signal?.reason));
        const settle = (act: () => void): void => {
            clearTimeout(timer);
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
