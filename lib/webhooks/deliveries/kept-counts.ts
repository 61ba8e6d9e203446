import { MAX_COUNTED } from '../exporters/exporter-health.ts';
import type { DeliveryFilter } from './deliveries.ts';
import { hasEnded } from './delivery-states.ts';
import type { DeliveryStore } from './delivery-store.ts';

/** Whether count may be kept of those of a filter that have ended: of each exporter, state, kind and outcome. */
export function isCountKept({ state, eventId, since, until, after }: DeliveryFilter): boolean {
    return (
        (state === undefined || hasEnded(state)) &&
        eventId === undefined &&
        since === undefined &&
        until === undefined &&
        after === undefined
    );
}

/** A number of deliveries, or of attempts. */
export interface DeliveryCount {
    /** 10,000 where there are `more`. */
    readonly count: number;
    /** Whether there are more than were counted: never of those that have ended, by exporter, state, kind and outcome, in a store that keeps count of them. */
    readonly more: boolean;
}

/** How many a store has. */
export async function countIn(store: DeliveryStore, filter: DeliveryFilter): Promise<DeliveryCount> {
    const counted = await countUpTo((max) => store.count(filter, max));
    // Either as many as that or more.
    return counted.more && store.keepsCounts === true && isCountKept(filter)
        ? await countUpTo((max) => store.count(filter, max), MAX_COUNTED + 2)
        : counted;
}

/** How many are counted by what counts up to a number. */
export async function countUpTo(count: (max: number) => Promise<number>, max: number = MAX_COUNTED + 1): Promise<DeliveryCount> {
    const counted = await count(max);
    return counted === max ? { count: MAX_COUNTED, more: true } : { count: counted, more: false };
}
