import type { KeyRing } from '../lib/keys/key-ring.ts';
import { egressGuard } from '../lib/webhooks/egress-guard.ts';
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

/** What `SCANWIRE_EGRESS_ALLOW` opens: CIDR blocks, addresses and host names, with commas between them. */
export function egressAllowList({ SCANWIRE_EGRESS_ALLOW: text = '' }: NodeJS.ProcessEnv): readonly string[] {
    return text
        .split(',')
        .map((entry) => entry.trim())
        .filter((entry) => entry !== '');
}
