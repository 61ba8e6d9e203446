import type { RecordedFault } from './faults.ts';

/** The death of a process as a campaign records it, or what is given of another fault. */
export function recordedFault(given: Partial<RecordedFault> = {}): RecordedFault {
    return {
        kind: 'process killed',
        target: 'host-1',
        at: 0,
        duration: 0,
        from: 1000,
        until: 1000,
        excuses: 0,
        address: '127.1.0.1',
        ...given,
    };
}
