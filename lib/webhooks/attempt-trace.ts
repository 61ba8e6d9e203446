import type { Outcome, Timings } from './outcome.ts';

type Phase = Exclude<keyof Timings, 'total'>;

/** What is learned on the way, kept apart from the result so that a failed attempt still tells how far it came. Times in milliseconds. */
export interface AttemptTrace extends Record<Phase, number | null> {
    address: string | null;
    fingerprint: string | null;
}

export function attemptTrace(): AttemptTrace {
    return { dns: null, connect: null, tls: null, firstByte: null, address: null, fingerprint: null };
}

/** The parts of an outcome that the trace holds, in whole milliseconds. */
export function traced(trace: AttemptTrace, total: number): Pick<Outcome, 'timings' | 'address' | 'fingerprint'> {
    const { dns, connect, tls, firstByte, address, fingerprint } = trace;
    const whole = (time: number | null): number | null => (time === null ? null : Math.round(time));
    return {
        timings: { dns: whole(dns), connect: whole(connect), tls: whole(tls), firstByte: whole(firstByte), total: Math.round(total) },
        address,
        fingerprint,
    };
}
