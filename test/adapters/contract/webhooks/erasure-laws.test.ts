import t from 'tap';
import { erasureLaws } from '../../../../adapters/contract/webhooks/erasure-laws.ts';
import { at } from '../../../../adapters/contract/webhooks/fixture.ts';
import type { Delivery, DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { EventSummary } from '../../../../lib/webhooks/events/new-event.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
    'keeps the row of an event whose body is erased': erasing(async (deliveries, id) => ({ ...(await deliveries.erase(id)), kind: '' })),
    'erases a body once': erasing(async (deliveries, id) => ({ ...(await deliveries.erase(id)), erasedAt: await deliveries.now() })),
    'knows nothing of an event that does not exist': erasing((deliveries, id) =>
        deliveries.erase(id).catch(() => ({ id, kind: '', createdAt: at(0), erasedAt: at(0), ended: 0 })),
    ),
    'ends the active deliveries of an erased event, and no others': (_, deliveries) => ({
        deliveries: {
            get: async (id) => {
                const delivery = await deliveries.get(id);
                return delivery?.state === 'erased' ? { ...delivery, state: 'pending', finishedAt: null } : delivery;
            },
        },
    }),
    'takes the claims on an erased event away': (_, deliveries) => ({
        deliveries: { attempts: async (id) => (await deliveries.attempts(id)).map((attempt) => ({ ...attempt, late: false })) },
    }),
    'claims nothing of an erased event, by whatever it was handed out with': erasing(eventOf),
    'refuses to replay a delivery of an erased event': (_, deliveries) => ({
        deliveries: {
            replay: async (id) => ({ ...((await deliveries.get(id)) as Delivery), state: 'pending', dueAt: at(0) }),
        },
    }),
    'leaves no delivery active when an event is erased while it is replayed': erasing(eventOf),
};

proveWebhookLaws(t, erasureLaws, MUTANTS);

/** Says that it was erased, and does nothing. */
async function eventOf(deliveries: DeliveryStore, id: string): Promise<EventSummary & { readonly ended: number }> {
    return { ...((await deliveries.event(id)) as EventSummary), erasedAt: await deliveries.now(), ended: 0 };
}

function erasing(erase: (deliveries: DeliveryStore, id: string) => ReturnType<DeliveryStore['erase']>): Mutant {
    return (_, deliveries) => ({ deliveries: { erase: (id) => erase(deliveries, id) } });
}
