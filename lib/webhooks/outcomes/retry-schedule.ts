import { isIP } from 'node:net';
import { hostOf } from '../../egress/outgoing-url.ts';
import { MAX_DELAY } from '../setting-values.ts';
import type { Outcome } from './outcome.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Delays before each try but the first, as the Standard Webhooks specification advises; a delivery that has used them all is `exhausted`. Milliseconds. */
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

/** Whether a stored value can be used as the schedule of an exporter: it keeps those rules of `settingSchemas` without which no time could be reckoned. */
export function isSchedule(stored: unknown): stored is readonly number[] {
    return Array.isArray(stored) && stored.every((delay) => Number.isFinite(delay) && delay >= 0 && delay <= MAX_DELAY);
}

/** Maximum number of further tries when the receiver refuses the message itself: somebody may be mending its configuration. */
const SHORT_RETRIES = 4;

const JITTER = 0.2;

/** What becomes of the delivery after an attempt. */
export type NextState =
    | { readonly state: 'delivered' }
    | { readonly state: 'exhausted' }
    /** Tried again after so many milliseconds. */
    | { readonly state: 'pending'; readonly delay: number }
    /**
     * Tried again after an attempt that ended as `interrupted`, which is called a fault. The delay is {@link faultDelay}, and the delivery stays where
     * it is in its schedule.
     */
    | { readonly state: 'pending'; readonly delay: 'fault' };

/** An attempt that has ended, and what decides whether its delivery is tried again. */
export interface EndedAttempt {
    readonly outcome: Pick<Outcome, 'code' | 'status' | 'retryAfter'>;
    /** The exporter's, empty where it could not be unsealed. */
    readonly url: string;
    /** The exporter's, or the default one. */
    readonly schedule: readonly number[];
    /** As {@link Claim.attemptSinceReplay}: without those that were interrupted. */
    readonly attemptSinceReplay: number;
    /** True for a delivery that is tried once. */
    readonly singleAttempt: boolean;
    /** 0 to 1, as `Math.random`. */
    readonly random: () => number;
}

/** What becomes of a delivery after an attempt. The receiver's `Retry-After` is a floor for the next try. */
export function nextState({ outcome, url, schedule, attemptSinceReplay, singleAttempt, random }: EndedAttempt): NextState {
    if (outcome.code === 'delivered') {
        return { state: 'delivered' };
    }

    if (outcome.code === 'interrupted' && !singleAttempt) {
        return { state: 'pending', delay: 'fault' };
    }

    const retries = singleAttempt ? 0 : maxRetries(outcome, url);
    const delay = attemptSinceReplay <= retries ? schedule[attemptSinceReplay - 1] : undefined;
    if (delay === undefined) {
        return { state: 'exhausted' };
    }

    const jittered = delay * (1 - JITTER + 2 * JITTER * random());
    return { state: 'pending', delay: Math.round(Math.max(jittered, outcome.retryAfter ?? 0)) };
}

/** Client errors that pass by themselves: 408 Request Timeout and 425 Too Early. */
const PASSING: ReadonlySet<number | null> = new Set([408, 425]);

/** How many further tries of its schedule a failure deserves; none where only a change of the exporter can help, or nothing can. */
function maxRetries({ code, status }: EndedAttempt['outcome'], url: string): number {
    switch (code) {
        case 'gone':
        case 'invalid_exporter':
        case 'invalid_message':
            return 0;
        case 'address_blocked':
            return isNamed(url) ? Number.POSITIVE_INFINITY : 0;
        case 'client_error':
            return PASSING.has(status) ? Number.POSITIVE_INFINITY : SHORT_RETRIES;
        default:
            return Number.POSITIVE_INFINITY;
    }
}

/** Whether the URL has a name for its host. By the next try a name may lead to other addresses, while an address in the URL stays blocked. */
function isNamed(url: string): boolean {
    return URL.canParse(url) && isIP(hostOf(new URL(url))) === 0;
}
