import type { Dispatcher } from './dispatcher.ts';
import type { HandOutOptions } from './reservations.ts';

/** Lets few acceptances of this process hand out at the same time. */
export interface AcceptanceLimit {
    /**
     * Runs an acceptance.
     *
     * @param accept Is given by what options it may hand out; undefined where what it accepts has to wait in its rows.
     * @param leaves Whether some of what it has accepted waits in its rows.
     */
    run<Result>(
        accept: (handOut: Required<HandOutOptions> | undefined) => Promise<Result>,
        leaves: (result: Result) => boolean,
    ): Promise<Result>;
}

/**
 * How many acceptances may hand out at once. None sees what another hands out meanwhile: a second one can exceed an exporter's window by what it hands out
 * itself, and each beyond it would by as much again.
 */
export const ACCEPTANCES_AT_ONCE = 2;

/**
 * The limit of a process, over all ways to accept. Who comes beyond it does not wait, since it may be that others wait for a key or for a connection
 * that is dead: what it accepts is left to dispatch.
 */
export function acceptanceLimit({ handOutOptions, wake }: Pick<Dispatcher, 'handOutOptions' | 'wake'>): AcceptanceLimit {
    let handingOut = 0;
    let isLeft = false;

    /**
     * Dispatch does not see either what is being handed out, and what it hands out in the same moment comes on top: so it is not woken while two do, and
     * finds what was left at the next poll at the latest.
     */
    function wakeInTime(): void {
        if (isLeft && handingOut < ACCEPTANCES_AT_ONCE) {
            isLeft = false;
            wake();
        }
    }

    return {
        async run(accept, leaves) {
            const handOut = handingOut < ACCEPTANCES_AT_ONCE ? handOutOptions() : undefined;
            const place = handOut === undefined ? 0 : 1;
            handingOut += place;
            try {
                const result = await accept(handOut);
                isLeft ||= leaves(result);
                return result;
            } finally {
                handingOut -= place;
                wakeInTime();
            }
        },
    };
}
