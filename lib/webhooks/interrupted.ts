import type { Outcome } from './outcome.ts';

/**
 * The outcome of an attempt whose holder was not heard of again; what the receiver got is unknown.
 *
 * @param elapsed Milliseconds from the claim until it was taken away.
 */
export function interrupted(elapsed: number, detail: string): Outcome {
    return {
        code: 'interrupted',
        status: null,
        detail,
        retryAfter: null,
        timings: { dns: null, connect: null, tls: null, firstByte: null, total: Math.max(0, Math.round(elapsed)) },
        address: null,
        fingerprint: null,
    };
}

/** Why a claim was taken away from its holder. */
export const INTERRUPTIONS = {
    expired: 'no outcome was recorded before the claim ran out',
    removed: 'the exporter was removed during the attempt',
} as const;
