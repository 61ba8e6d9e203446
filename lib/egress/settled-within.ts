export interface Within {
    /** Milliseconds. */
    readonly timeout: number;
    /** Makes what it rejects with after that. */
    readonly late: () => Error;
    /** Rejects with the signal's reason. */
    readonly signal: AbortSignal;
}

/** The promise's own result, if it comes in time; what comes later is dropped, a rejection too. */
export async function settledWithin<T>(promise: Promise<T>, { timeout, late, signal }: Within): Promise<T> {
    promise.catch(() => undefined);
    signal.throwIfAborted();

    return await new Promise<T>((resolve, reject) => {
        const timer = setTimeout(() => settle(() => reject(late())), timeout);
        const onAbort = (): void => settle(() => reject(signal.reason));
        const settle = (act: () => void): void => {
            clearTimeout(timer);
            signal.removeEventListener('abort', onAbort);
            act();
        };

        signal.addEventListener('abort', onAbort, { once: true });
        promise.then(
            (value) => settle(() => resolve(value)),
            (error: unknown) => settle(() => reject(error)),
        );
    });
}
