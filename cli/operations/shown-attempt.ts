import type { TestOutcome } from '../../lib/webhooks/exporters.ts';
import type { Outcome } from '../../lib/webhooks/outcome.ts';
import type { Attempt } from '../../lib/webhooks/store.ts';

/** An attempt with what it came to beside its times: `status`, `code` and the rest are null while it is under way. */
export type ShownAttempt = Omit<Attempt, 'outcome'> & { readonly [Field in keyof Outcome]: Outcome[Field] | null };

/** What a `test` came to, its attempt in the same form. */
export interface ShownTest {
    readonly deliveryId: string;
    /** Null when it has not been sent and answered in the time that it was waited for. */
    readonly attempt: ShownAttempt | null;
}

const UNDER_WAY = { status: null, code: null, detail: null, retryAfter: null, timings: null, address: null, fingerprint: null };

export function shownAttempt({ number, startedAt, finishedAt, outcome, late }: Attempt): ShownAttempt {
    return { number, startedAt, finishedAt, ...UNDER_WAY, ...outcome, late };
}

export function shownTest({ deliveryId, attempt }: TestOutcome): ShownTest {
    return { deliveryId, attempt: attempt === null ? null : shownAttempt(attempt) };
}
