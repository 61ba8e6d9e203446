import type { ClaimRequest, Dispatched } from '../deliveries/delivery-store.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/** Maximum number of deliveries that are read in one statement. */
const BATCH = 200;

/** The bytes of bodies that are read ahead at once, at most. */
const MOST_BYTES = 1_048_576;

/** Reads ahead what is needed to send deliveries that were handed out and go to the workers in turns. Never rejects. */
export type ReadAhead = (handedOut: readonly Dispatched[]) => Promise<void>;

/**
 * One statement for all of them, where each would otherwise be read in its turn, beside new events that come with theirs. What is not read ahead, for want of memory or
 * since the store has failed, is read in its turn; as it is where another process sends it.
 */
export function readingAhead({
    deliveries,
    traces,
    messageCache,
    session,
    claimDuration,
    onError,
}: Pick<WebhooksContext, 'deliveries' | 'traces' | 'messageCache' | 'session' | 'claimDuration' | 'onError'>): ReadAhead {
    async function read(requests: readonly ClaimRequest[]): Promise<void> {
        const claims = await traces.withTraceparents(await deliveries.claim(requests, session.id, MOST_BYTES));
        for (const claim of claims) {
            if (claim !== null) {
                messageCache.addSettings(claim);
                messageCache.add([claim.deliveryId], claim.event, claim.message);
            }
        }
    }

    return async (handedOut) => {
        const requests = handedOut.slice(0, BATCH).flatMap(({ deliveryId, reservation }): readonly ClaimRequest[] => {
            const token = reservation?.token;
            return token === undefined ? [] : [{ deliveryId, token, duration: claimDuration, reservation: token, keepsReservation: true }];
        });
        if (requests.length > 1 && session.offers()) {
            await messageCache.duringRead(read(requests)).catch(onError);
        }
    };
}
