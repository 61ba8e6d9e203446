/** In milliseconds. */
const EVERY = 250;

export interface CaptureProgress {
    count(ok: boolean): void;
    clear(): void;
}

/** One line on stderr that counts, where a person looks on. */
export function captureProgress(wanted: boolean): CaptureProgress {
    if (!wanted || !process.stderr.isTTY) {
        return { count() {}, clear() {} };
    }

    let [captured, failed, shownAt] = [0, 0, 0];
    return {
        count(ok) {
            captured += ok ? 1 : 0;
            failed += ok ? 0 : 1;
            if (performance.now() - shownAt > EVERY) {
                shownAt = performance.now();
                process.stderr.write(`\r${captured} captured, ${failed} failed`);
            }
        },
        clear() {
            process.stderr.write('\r\u001b[K');
        },
    };
}
