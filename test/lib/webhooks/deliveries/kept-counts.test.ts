import t from 'tap';
import type { DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { countIn } from '../../../../lib/webhooks/deliveries/kept-counts.ts';

/** A store with so many, all of them ended, that keeps count of these or does not. */
const storeWith = (deliveries: number, keepsCounts: boolean): DeliveryStore =>
    ({ keepsCounts, count: async (_, max) => (keepsCounts ? deliveries : Math.min(deliveries, max)) }) as Pick<
        DeliveryStore,
        'keepsCounts' | 'count'
    > as DeliveryStore;

t.test('says how many there are as far as somebody counted', async (t) => {
    const stopped = { count: 10_000, more: true };
    for (const deliveries of [0, 10_000, 10_001, 10_002, 1_000_000]) {
        t.strictSame(await countIn(storeWith(deliveries, true), {}), { count: deliveries, more: false }, `${deliveries}, kept`);
        const counted = deliveries > 10_000 ? stopped : { count: deliveries, more: false };
        t.strictSame(await countIn(storeWith(deliveries, false), {}), counted, `${deliveries}, one by one`);
    }
});
