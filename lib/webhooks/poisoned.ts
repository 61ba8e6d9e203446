import type { WebhooksContext } from './options.ts';
import type { DeliveryEvent } from './outcome.ts';

type TellingContext = Pick<WebhooksContext, 'deliveries' | 'onEvent' | 'onError'>;

/** Tells the application of deliveries that this process has set aside. So few are that each is read, and a sweep returns no more than ids. */
export async function tellPoisoned(ids: readonly string[], context: TellingContext): Promise<void> {
    await Promise.all(ids.map((id) => tell(id, context).catch(context.onError)));
}

async function tell(id: string, { deliveries, onEvent }: TellingContext): Promise<void> {
    const event = await poisonedEvent(id, deliveries);
    if (event !== null) {
        await onEvent(event);
    }
}

/** Null when it is not set aside any more: a success was heard of late, or somebody has replayed it. */
async function poisonedEvent(id: string, deliveries: TellingContext['deliveries']): Promise<DeliveryEvent | null> {
    const [delivery, attempts] = await Promise.all([deliveries.get(id), deliveries.attempts(id)]);
    const outcome = attempts.at(-1)?.outcome;
    if (delivery?.state !== 'poisoned' || !outcome) {
        return null;
    }

    const { eventId, kind, exporterId, collector } = delivery;
    const { code, status, detail, timings } = outcome;
    return {
        type: 'delivery.poisoned',
        deliveryId: id,
        eventId,
        kind,
        exporterId,
        collector,
        attempt: delivery.attempts,
        singleAttempt: false,
        duration: timings.total,
        latency: null,
        code,
        status,
        detail,
    };
}
