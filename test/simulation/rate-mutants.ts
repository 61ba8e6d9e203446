import { randomUUID } from 'node:crypto';
import type { DeliveryStore, DispatchOptions, HandedOut } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { Mutant } from './deployment.ts';
import type { Timeline } from './timeline.ts';

/** A rate of the deployment that is wrong in one thing each. */
export const rateMutants: Readonly<Record<string, () => Mutant>> = {
    'a rate of the deployment that nobody keeps': () => ({
        above: ({ stores: { deliveries, ...stores } }) => {
            const dispatch: DeliveryStore['dispatch'] = ({ rate: _, ...options }) => deliveries.dispatch(options);
            return { stores: { ...stores, deliveries: { ...deliveries, dispatch } } };
        },
    }),

    'a rate of which retries take all that they can, and first tries what is left': () =>
        handedOutBy((handedOut) => handedOut.toSorted((one, other) => Number(isRetry(other)) - Number(isRetry(one)))),

    'a rate of which retries get nothing as long as there are first tries': () =>
        handedOutBy((handedOut) => handedOut.toSorted((one, other) => Number(isRetry(one)) - Number(isRetry(other)))),

    'a rate that one exporter may use up': () =>
        handedOutBy((handedOut) => handedOut.toSorted((one, other) => one.exporterId.localeCompare(other.exporterId))),
};

function isRetry({ attempt }: HandedOut): boolean {
    return attempt > 1;
}

/** A store that keeps the rate of the deployment, but hands out what comes first in this order. Tests come before all. */
function handedOutBy(order: (handedOut: readonly HandedOut[]) => readonly HandedOut[]): Mutant {
    return {
        below: ({ deliveries, ...stores }, timeline) => ({
            ...stores,
            deliveries: { ...deliveries, dispatch: dispatching(deliveries, timeline, order) },
        }),
    };
}

function dispatching(store: DeliveryStore, timeline: Timeline, order: (handedOut: readonly HandedOut[]) => readonly HandedOut[]) {
    let paidUntil = Number.NEGATIVE_INFINITY;

    return async ({ rate, ...options }: DispatchOptions) => {
        if (rate === undefined) {
            return await store.dispatch(options);
        }

        const isInRoom = await roomsOf(store, options.window);
        const { handedOut } = await store.dispatch({ ...options, window: MANY });

        const now = Math.floor(timeline.now);
        const since = Math.max(paidUntil, now - 1_000);
        const isTest = ({ singleAttempt }: HandedOut): boolean => singleAttempt;
        const ordered = [...handedOut.filter(isTest), ...order(handedOut.filter((one) => !isTest(one)))];
        const most = Math.max(0, Math.floor((rate * (now - since)) / 1_000));
        const kept = ordered.filter(isInRoom).slice(0, most);
        await putBack(
            store,
            ordered.filter((one) => !kept.includes(one)),
        );
        paidUntil = since + (kept.length * 1_000) / rate;
        return { handedOut: kept, waitsFor: [] };
    };
}

/** Of one exporter, so that there is something to choose from. */
const MANY = 100;

/** Whether one more is within the window of its exporter; each that is asked for counts. */
async function roomsOf(store: DeliveryStore, window: number): Promise<(one: HandedOut) => boolean> {
    const inFlight = await Promise.all((['queued', 'sending'] as const).map((state) => store.list({ state, limit: 1_000 })));
    const counts = new Map<string, number>();
    const counted = (exporterId: string): number => {
        const count = (counts.get(exporterId) ?? 0) + 1;
        counts.set(exporterId, count);
        return count;
    };
    for (const { exporterId } of inFlight.flat()) {
        counted(exporterId);
    }
    return ({ exporterId }) => counted(exporterId) <= window;
}

/** What a session claims that nobody knows waits again. */
async function putBack(store: DeliveryStore, handedOut: readonly HandedOut[]): Promise<void> {
    const requests = handedOut.map(({ deliveryId, reservation }) => {
        return { deliveryId, token: 'put back', duration: 1, ...(reservation !== null && { reservation: reservation.token }) };
    });
    await store.claim(requests, randomUUID());
}
