import type { DeliveryJob } from '../dispatching/delivery-queue.ts';
import type { OutcomeCode } from '../outcomes/outcome.ts';

/** When attempts begin. */
export interface AttemptPace {
    /** Null when one for this exporter may begin now, as a test always may; else resolves when it may. */
    whenMayBegin(job: Pick<DeliveryJob, 'exporterId' | 'singleAttempt'>): Promise<void> | null;
    /** Notes how an attempt for this exporter has ended. A fault tells nothing about the exporter, nor does a message that could not be made. */
    ended(exporterId: string, code: OutcomeCode): void;
}

/**
 * How many attempts for exporters that have failed begin together (`max`), and milliseconds until as many may begin again (`apart`). The
 * beginning of attempts keeps the process busy, most of all where names have to be looked up. Attempts that begin together also run into their
 * time limit together, which keeps it busy once more. Meanwhile nothing would go out to receivers that are well.
 */
const TOGETHER = { max: 8, apart: 5 } as const;

/** Maximum number of exporters that are remembered as failing. Beyond it, the one whose latest failure is the oldest is forgotten. */
const MAX_FAILING = 1_000;

/** The pace of a process, in which no exporter has failed yet. */
export function attemptPace(): AttemptPace {
    const failing = new Set<string>();
    const waiting: (() => void)[] = [];
    let left: number = TOGETHER.max;

    function beginNext(): void {
        const next = waiting.splice(0, TOGETHER.max);
        left = TOGETHER.max - next.length;
        for (const begin of next) {
            begin();
        }
        if (next.length > 0) {
            setTimeout(beginNext, TOGETHER.apart);
        }
    }

    return {
        whenMayBegin({ exporterId = '', singleAttempt }) {
            if (singleAttempt || !failing.has(exporterId)) {
                return null;
            }
            if (left === 0) {
                return new Promise((resolve) => waiting.push(resolve));
            }
            if (left === TOGETHER.max) {
                setTimeout(beginNext, TOGETHER.apart);
            }
            left -= 1;
            return null;
        },

        ended(exporterId, code) {
            if (code === 'interrupted' || code === 'invalid_message') {
                return;
            }
            failing.delete(exporterId);
            if (code !== 'delivered') {
                const [oldest = ''] = failing.size < MAX_FAILING ? [] : failing;
                failing.delete(oldest);
                failing.add(exporterId);
            }
        },
    };
}
