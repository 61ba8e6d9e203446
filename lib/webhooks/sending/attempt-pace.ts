import type { DeliveryJob } from '../dispatching/delivery-queue.ts';
import type { OutcomeCode } from '../outcomes/outcome.ts';

/** How an attempt has ended: its code, and how many milliseconds it took. */
export interface Ended {
    readonly code: OutcomeCode;
    readonly took: number;
}

/** When attempts begin. */
export interface AttemptPace {
    /** Null when one for this exporter may begin now, as a test always may; else resolves when it may. */
    whenMayBegin(job: Pick<DeliveryJob, 'exporterId' | 'singleAttempt'>): Promise<void> | null;
    /** Notes how an attempt for this exporter has ended. A fault tells nothing about the exporter, nor does a message that could not be made. */
    ended(exporterId: string, attempt: Ended): void;
}

/** How many attempts begin together where they are spread. */
const TOGETHER = 8;

/**
 * Milliseconds from one beginning to the next of attempts for exporters that have failed, of all of them together. The beginning of attempts keeps the
 * process busy, most of all where names have to be looked up. Attempts that begin together also run into their time limit together, which keeps it busy
 * once more. Meanwhile nothing would go out to receivers that are well.
 */
const APART_WHEN_FAILING = 5;

/**
 * Attempts that begin together are answered together where a receiver takes the same time for each, and begin together again: a window full of them keeps
 * the process busy, and leaves it idle until the next answers. So those of a receiver that takes so many milliseconds are spread over half of its time, or
 * the most that is given, and it loses nothing by it: they come back spread.
 */
const SLOW = 100;
const LONGEST_SPREAD = 500;
const APART_WHEN_SLOW = 10;

/**
 * From here on exporters are spread together, over the most that is given, whether their attempts fail or not: one event for a hundred receivers that
 * take 8 s has a hundred attempts that begin, are answered and begin again together, and so have the retries of as many whose names nobody answers.
 */
const VERY_SLOW = 2 * LONGEST_SPREAD;

/** What a new time counts for among those before. */
const NEW_SHARE = 1 / 8;

/** Maximum number of exporters that are remembered as failing, and as slow. Beyond it, the one whose latest attempt is the oldest is forgotten. */
const MAX_KNOWN = 1_000;

interface SlowExporter {
    /** Milliseconds that its attempts take, on the average of the last ones. */
    took: number;
    readonly turn: Turn;
}

/** Null when the attempt of who asks may begin at once, else what resolves when it may. */
type Turn = () => Promise<void> | null;

/** The pace of a process, in which no exporter has been tried yet. */
export function attemptPace(): AttemptPace {
    const failing = new Set<string>();
    const turnOfFailing = turns(APART_WHEN_FAILING, () => TOGETHER);
    const slow = new Map<string, SlowExporter>();
    const turnOfVerySlow = turns(APART_WHEN_SLOW, (waiting) => Math.ceil((waiting * APART_WHEN_SLOW) / LONGEST_SPREAD));

    function noteTime(exporterId: string, took: number): void {
        const known = slow.get(exporterId);
        slow.delete(exporterId);
        const usual = known === undefined ? took : known.took + NEW_SHARE * (took - known.took);
        if (usual >= SLOW) {
            makeRoom(slow);
            slow.set(exporterId, known === undefined ? slowExporter(usual) : Object.assign(known, { took: usual }));
        }
    }

    return {
        whenMayBegin({ exporterId = '', singleAttempt }) {
            if (singleAttempt) {
                return null;
            }
            const { took = 0, turn = null } = slow.get(exporterId) ?? {};
            if (took >= VERY_SLOW) {
                return turnOfVerySlow();
            }
            return failing.has(exporterId) ? turnOfFailing() : (turn?.() ?? null);
        },

        ended(exporterId, { code, took }) {
            if (code === 'interrupted' || code === 'invalid_message') {
                return;
            }
            failing.delete(exporterId);
            if (code !== 'delivered') {
                makeRoom(failing);
                failing.add(exporterId);
            }
            noteTime(exporterId, took);
        },
    };
}

function makeRoom(known: Map<string, unknown> | Set<string>): void {
    const [oldest = ''] = known.size < MAX_KNOWN ? [] : known.keys();
    known.delete(oldest);
}

function slowExporter(took: number): SlowExporter {
    const exporter: SlowExporter = {
        took,
        turn: turns(APART_WHEN_SLOW, (waiting) => Math.ceil((waiting * APART_WHEN_SLOW) / Math.min(exporter.took / 2, LONGEST_SPREAD))),
    };
    return exporter;
}

/**
 * Lets {@link TOGETHER} begin together, and whoever comes meanwhile in turns.
 *
 * @param apart Milliseconds from turn to turn.
 * @param share How many begin in each, by how many wait; the most that has been asked for since nobody waited counts.
 */
function turns(apart: number, share: (waiting: number) => number): Turn {
    const waiting: (() => void)[] = [];
    let left = TOGETHER;
    let each = 0;

    function beginNext(): void {
        each = Math.max(each, share(waiting.length));
        const next = waiting.splice(0, each);
        left = TOGETHER - next.length;
        for (const begin of next) {
            begin();
        }
        if (next.length > 0) {
            setTimeout(beginNext, apart);
        } else {
            each = 0;
        }
    }

    return () => {
        if (left <= 0 || waiting.length > 0) {
            return new Promise((resolve) => waiting.push(resolve));
        }
        if (left === TOGETHER) {
            setTimeout(beginNext, apart);
        }
        left -= 1;
        return null;
    };
}
