import type { Eventual } from '../../eventual.ts';
import type { Claim } from '../deliveries/delivery-store.ts';
import { RESERVATION_TIMES } from '../dispatching/reservations.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import type { ReadClaim } from './claim-batches.ts';

/*
 * A change of an exporter, its stop or removal, and the erasure of an event hold once they are answered, which is no sooner than
 * RESERVATION_TIMES.beginWithin after they are stored. So an attempt begins with what was read less than that ago, or is read once more.
 */

/** Milliseconds between the snapshot of a claim and the time that it bears, at most. */
const SNAPSHOT_BEFORE = 50;

type Context = Pick<WebhooksContext, 'messageCache' | 'reservations' | 'monotonic' | 'exporters' | 'deliveries' | 'onError'>;

/** Whether an attempt may begin with what was read with its claim. A `test` was asked for with what it is sent with. */
export function isCurrent(claim: ReadClaim, context: Context): Eventual<boolean> {
    return claim.singleAttempt || (context.messageCache.holds(claim) && (isFresh(claim, context) || isUnchanged(claim, context)));
}

/** By the store's time where it is known: who claims may have waited for a connection, and nothing was read by then. */
function isFresh({ asked, claimedAt }: ReadClaim, { monotonic, reservations }: Context): boolean {
    const sinceClaimed = (reservations.now()?.getTime() ?? Number.POSITIVE_INFINITY) - claimedAt.getTime();
    const { beginWithin } = RESERVATION_TIMES;
    return monotonic() - asked <= beginWithin || (sinceClaimed >= 0 && sinceClaimed <= beginWithin - SNAPSHOT_BEFORE);
}

/** States of a delivery under a claim. */
const CLAIMED: ReadonlySet<string> = new Set(['queued', 'sending']);

/** Whether the rows still say what a claim has brought. What cannot be read in time is taken for changed. */
export async function isUnchanged({ deliveryId, exporter, ...claim }: Claim, context: Context): Promise<boolean> {
    const { exporters, deliveries, monotonic, messageCache, onError } = context;
    const asked = monotonic();
    try {
        const [current, delivery] = await Promise.all([exporters.get(exporter.id), deliveries.get(deliveryId)]);
        const isSame = current?.updatedAt.getTime() === exporter.updatedAt.getTime() && messageCache.holds({ exporter, ...claim });
        const isOpen = current?.state === 'running' && current.pausedAt === null && CLAIMED.has(delivery?.state ?? '');
        return isSame && isOpen && monotonic() - asked <= RESERVATION_TIMES.beginWithin;
    } catch (error) {
        onError(error as Error);
        return false;
    }
}
