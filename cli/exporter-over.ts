import type { KeyRing } from '../lib/keys/key-ring.ts';
import { ScanwireError } from '../lib/scanwire-error.ts';
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

const EGRESS_ALLOW = 'SCANWIRE_EGRESS_ALLOW';

/**
 * What `SCANWIRE_EGRESS_ALLOW` opens: CIDR blocks, addresses and host names, with commas between them.
 *
 * @throws ScanwireError `MISCONFIGURED` that names the variable and the entry.
 */
export function egressAllowList(environment: NodeJS.ProcessEnv): readonly string[] {
    const allow = (environment[EGRESS_ALLOW] ?? '')
        .split(',')
        .map((entry) => entry.trim())
        .filter((entry) => entry !== '');
    try {
        egressGuard({ allow });
    } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new ScanwireError('MISCONFIGURED', `${EGRESS_ALLOW}: ${reason}`, { field: EGRESS_ALLOW, cause: error });
    }

    return allow;
}
