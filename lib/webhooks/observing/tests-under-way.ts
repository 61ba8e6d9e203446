import { type AttemptProgress, newProgress, type Timings, timingsOf } from '../outcomes/outcome.ts';

/**
 * The tests that this process is sending: somebody looks at how far they are. Only tests are kept here, for as long as they take; of all else, and
 * of what another process sends, there is nothing to see before the outcome is in the store.
 */
export interface TestsUnderWay {
    /** What the attempt of a test writes its progress into. */
    begin(deliveryId: string): AttemptProgress;
    /** Once its outcome is recorded. */
    end(deliveryId: string): void;
    /** The times of the phases that are over, and of all of it so far; null for what this process is not sending. */
    timings(deliveryId: string): Timings | null;
}

interface UnderWay {
    readonly begunAt: number;
    readonly progress: AttemptProgress;
}

/** @param monotonic Milliseconds that only go forward. */
export function testsUnderWay({ monotonic }: { readonly monotonic: () => number }): TestsUnderWay {
    const all = new Map<string, UnderWay>();
    return {
        begin(deliveryId) {
            const progress = newProgress();
            all.set(deliveryId, { begunAt: monotonic(), progress });
            return progress;
        },

        end(deliveryId) {
            all.delete(deliveryId);
        },

        timings(deliveryId) {
            const found = all.get(deliveryId);
            return found === undefined ? null : timingsOf(found.progress, monotonic() - found.begunAt);
        },
    };
}
