import t from 'tap';
import { present } from '../../../../adapters/contract/assertions.ts';
import { discardingLaws } from '../../../../adapters/contract/webhooks/discarding-laws.ts';
import type { Delivery, DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { type Mutants, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
    'ends what waits as cancelled, and hands it out no more': (_, deliveries) => ({
        deliveries: {
            discard: async (id) => ({ ...(await found(deliveries, id)), state: 'cancelled', finishedAt: await deliveries.now() }),
        },
    }),
    'ends what has failed for good, is held or is set aside, so that none of it is replayed': (_, deliveries) => ({
        deliveries: {
            discard: async (id) => {
                const delivery = await found(deliveries, id);
                return delivery.finishedAt === null ? await discarded(deliveries, id) : delivery;
            },
        },
    }),
    'refuses what may be under way, was delivered or is cancelled, and changes nothing of it': (_, deliveries) => ({
        deliveries: { discard: async (id) => await discarded(deliveries, id).catch(() => found(deliveries, id)) },
    }),
    'discards nothing that does not exist': (_, deliveries) => ({
        deliveries: { discard: async (id) => (await deliveries.get(id)) ?? ({ id } as Delivery) },
    }),
};

proveWebhookLaws(t, discardingLaws, MUTANTS);

async function found(deliveries: DeliveryStore, id: string): Promise<Delivery> {
    return present(await deliveries.get(id));
}

async function discarded(deliveries: DeliveryStore, id: string): Promise<Delivery> {
    return await present(deliveries.discard, 'discard()').call(deliveries, id);
}
