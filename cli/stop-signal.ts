/** A package runner passes a terminal's signal on, so that it comes twice at once. */
const SAME_SIGNAL = 500;

/** Resolves at the first SIGINT or SIGTERM. The next one, a moment later, ends the process at once. */
export function stopSignal(): Promise<void> {
    return new Promise((resolve) => {
        let first: number | null = null;
        const onSignal = (): void => {
            if (first === null) {
                first = performance.now();
                resolve();
            } else if (performance.now() - first > SAME_SIGNAL) {
                process.exit(1);
            }
        };

        for (const signal of ['SIGINT', 'SIGTERM'] as const) {
            process.on(signal, onSignal);
        }
    });
}
