import { MAX_COUNTED } from '../exporters/exporter-health.ts';
import type { DeliveryFilter } from './deliveries.ts';
import { hasEnded } from './delivery-states.ts';
import type { DeliveryStore } from './delivery-store.ts';

/** Whether a store may have the number of ended deliveries for a filter without counting them: such numbers are kept by exporter, state, kind and outcome. */
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
    /**
     * Whether there are more than were counted. A store that keeps numbers of ended deliveries (`keepsCounts`) counts those without a limit,
     * where they are asked for by nothing but exporter, state, kind and outcome.
     */
    readonly more: boolean;
}

/** How many a store has. */
export async function countIn(store: DeliveryStore, filter: DeliveryFilter): Promise<DeliveryCount> {
    const counted = await countUpTo((max) => store.count(filter, max));
    // The answer is its limit where the store has stopped counting there, and also where it has kept just that number. Another limit tells which.
    return counted.more && store.keepsCounts === true && isCountKept(filter)
        ? await countUpTo((max) => store.count(filter, max), MAX_COUNTED + 2)
        : counted;
}

/** The result of a function that counts up to `max`. */
export async function countUpTo(count: (max: number) => Promise<number>, max: number = MAX_COUNTED + 1): Promise<DeliveryCount> {
    const counted = await count(max);
    return counted === max ? { count: MAX_COUNTED, more: true } : { count: counted, more: false };
}
