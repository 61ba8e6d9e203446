import type { Retryability } from './outcome-code.ts';
import type { NextStep } from './store.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Delays before each try but the first, as the Standard Webhooks specification advises; then `exhausted`. */
export const DEFAULT_SCHEDULE: readonly number[] = [
    5 * SECOND,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    24 * HOUR,
];

/** A receiver that refuses the message itself is tried so many times more, at most: somebody may be mending its configuration. */
const SHORT_RETRIES = 4;

const JITTER = 0.2;

/** A `Retry-After` beyond this is not waited for. */
const RETRY_AFTER_CAP: number = 24 * HOUR;

export interface AttemptEnd {
    readonly kind: Retryability;
    /** The receiver's wish in milliseconds, null when it has none. */
    readonly retryAfter: number | null;
    /** Number of the attempt in its round, from 1. */
    readonly round: number;
    /** True for a delivery that is tried once. */
    readonly single: boolean;
    readonly schedule: readonly number[];
    readonly now: Date;
    /** 0 to 1, as `Math.random`. */
    readonly random: () => number;
}

/** What becomes of a delivery after an attempt. */
export function nextStep({ kind, retryAfter, round, single, schedule, now, random }: AttemptEnd): NextStep {
    if (kind === 'success') {
        return { state: 'delivered' };
    }

    const delay = single ? undefined : delaysFor(kind, schedule)[round - 1];
    if (delay === undefined) {
        return { state: 'exhausted' };
    }

    const jittered = delay * (1 - JITTER + 2 * JITTER * random());
    const floor = Math.min(retryAfter ?? 0, RETRY_AFTER_CAP);
    return { state: 'pending', dueAt: new Date(now.getTime() + Math.round(Math.max(jittered, floor))) };
}

function delaysFor(kind: Retryability, schedule: readonly number[]): readonly number[] {
    switch (kind) {
        case 'retry':
            return schedule;
        case 'short':
            return schedule.slice(0, SHORT_RETRIES);
        default:
            return [];
    }
}
