import type { Dispatcher } from './dispatcher.ts';
import type { HandOutOptions } from './reservations.ts';

/** Lets few acceptances of this process hand out at the same time. */
export interface AcceptanceLimit {
    /**
     * Runs an acceptance.
     *
     * @param accept Gets the options for handing out at once; undefined where what it accepts has to wait in its rows.
     * @param leaves Told the result of `accept`: the exporters for which there was no room, so that accepted deliveries wait in their rows for dispatch;
     *     true where deliveries wait, and it is not known for which exporters.
     * @param options Without `mayHandOut`, which is the default, the acceptance leaves it to others: it may wait for somebody else's key.
     */
    run<Result>(
        accept: (handOut: Required<HandOutOptions> | undefined) => Promise<Result>,
        leaves: (result: Result) => readonly string[] | true,
        options?: { readonly mayHandOut: boolean },
    ): Promise<Result>;
}

/**
 * How many acceptances may hand out at the same time. None sees what another hands out meanwhile. So a second one can exceed an exporter's window
 * by what it hands out itself, and each further one would exceed it by as much again.
 */
export const ACCEPTANCES_AT_ONCE = 2;

/**
 * The limit of a process, over all ways to accept. An acceptance beyond the limit does not wait, since those before it may be waiting for
 * somebody else's key or for a dead connection. What it accepts is left to dispatch.
 */
export function acceptanceLimit({
    handOutOptions,
    wake,
    wakeFor,
}: Pick<Dispatcher, 'handOutOptions' | 'wake' | 'wakeFor'>): AcceptanceLimit {
    let handingOut = 0;
    /** Whether there may be room for something that was left. */
    let isLeft = false;
    /** Exporters for which there was no room when something was left. */
    const leftFor = new Set<string>();

    /**
     * Nor does dispatch see what acceptances are handing out; it would exceed the window as well. So it is not woken while two of them hand out.
     * What was left it finds at its next poll at the latest.
     */
    function wakeInTime(): void {
        if (handingOut === ACCEPTANCES_AT_ONCE) {
            return;
        }
        const exporterIds = [...leftFor];
        leftFor.clear();
        if (isLeft) {
            isLeft = false;
            wake();
        } else if (exporterIds.length > 0) {
            wakeFor(exporterIds);
        }
    }

    return {
        async run(accept, leaves, { mayHandOut } = { mayHandOut: true }) {
            const handOut = mayHandOut && handingOut < ACCEPTANCES_AT_ONCE ? handOutOptions() : undefined;
            const counted = handOut === undefined ? 0 : 1;
            handingOut += counted;
            try {
                const result = await accept(handOut);
                const left = leaves(result);
                isLeft ||= left === true || (left.length > 0 && handOut === undefined);
                for (const exporterId of left === true ? [] : left) {
                    leftFor.add(exporterId);
                }
                return result;
            } finally {
                handingOut -= counted;
                wakeInTime();
            }
        },
    };
}
