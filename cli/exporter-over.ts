import { egressGuard } from '../lib/egress/egress-guard.ts';
import type { KeyRing } from '../lib/keys/key-ring.ts';
import { httpSender } from '../lib/webhooks/http-sender.ts';
import type { DeliveryQueue } from '../lib/webhooks/queue.ts';
import { type Webhooks, webhooks } from '../lib/webhooks/webhooks.ts';
import type { Stores } from './stores.ts';

export interface ExporterParts {
    readonly stores: Pick<Stores, 'webhooks'>;
    readonly keyRing: KeyRing;
    readonly queue: DeliveryQueue;
    /** Non-public receiver addresses that may be called. */
    readonly allow: readonly string[];
}

/** The webhook exporter of a process that serves nothing. */
export function exporterOver({ stores, keyRing, queue, allow }: ExporterParts, onError: (error: Error) => void): Webhooks {
    const guard = egressGuard({ allow });
    return webhooks({ ...stores.webhooks, keyRing, queue, guard, sender: httpSender({ guard }), onError });
}
