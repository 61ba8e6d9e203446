import { within } from '../../within.ts';
import type { ClaimRequest, Dispatched } from '../deliveries/delivery-store.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/** Maximum number of deliveries that are read in one statement. */
const BATCH = 200;

/** The bytes of bodies that are read ahead at once, at most. */
const MAX_BYTES = 1_048_576;

/** For how many milliseconds those who hand out wait for a read: new events go out after it, and a connection may have fallen silent. */
const PATIENCE = 150;

/** Reads ahead what is needed to send deliveries that were handed out and go to the workers in turns. Never rejects, and waits for no read that takes long. */
export type ReadAhead = (handedOut: readonly Dispatched[]) => Promise<void>;

/**
 * One statement for all of them, where each would otherwise be read in its turn, beside new events that come with theirs. What is not read ahead, for want of memory or
 * since the store has failed or is slow, is read in its turn; as it is where another process sends it.
 */
export function readingAhead({
    deliveries,
    traces,
    messageCache,
    bodyMemory,
    session,
    claimDuration,
    onError,
}: Pick<WebhooksContext, 'deliveries' | 'traces' | 'messageCache' | 'bodyMemory' | 'session' | 'claimDuration' | 'onError'>): ReadAhead {
    let isReading = false;

    async function read(requests: readonly ClaimRequest[], maxBytes: number): Promise<void> {
        const claims = await traces.withTraceparents(await deliveries.claim(requests, session.id, maxBytes));
        for (const claim of claims) {
            if (claim !== null) {
                messageCache.addSettings(claim);
                messageCache.add([claim.deliveryId], claim.event, claim.message);
            }
        }
    }

    return async (handedOut) => {
        const own = handedOut.filter(({ collector }) => session.offers(collector));
        const requests = own.slice(0, BATCH).flatMap(({ deliveryId, reservation }): readonly ClaimRequest[] => {
            const token = reservation?.token;
            return token === undefined ? [] : [{ deliveryId, token, duration: claimDuration, reservation: token, keepsReservation: true }];
        });
        const maxBytes = Math.min(MAX_BYTES, bodyMemory.spare());
        if (requests.length > 1 && maxBytes > 0 && !isReading) {
            isReading = true;
            const done = messageCache
                .duringRead(read(requests, maxBytes))
                .catch(onError)
                .finally(() => {
                    isReading = false;
                });
            // A late one goes on by itself, and reports by itself.
            await within(done, { timeout: PATIENCE }).catch(() => undefined);
        }
    };
}
