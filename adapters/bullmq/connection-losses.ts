import { RESERVATION_TIMES } from '../../lib/webhooks/dispatching/reservations.ts';

/** Whether a server may be another than before, or have forgotten something: after a fail-over it hands out again what it has handed out. */
export interface ConnectionLosses {
    /** A connection was lost, or is there again: what counts is the later. */
    note(): void;
    /** Whether none was lost for so long that every claim of before is over. */
    isSteady(): boolean;
}

/** Those of the connections of one worker, or of all that share theirs. */
export function connectionLosses(): ConnectionLosses {
    let lostAt = Number.NEGATIVE_INFINITY;
    return {
        note() {
            lostAt = performance.now();
        },

        isSteady: () => performance.now() - lostAt > RESERVATION_TIMES.beginWithin,
    };
}
