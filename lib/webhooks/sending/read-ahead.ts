import { within } from '../../within.ts';
import type { ClaimRequest, HandedOut } from '../deliveries/delivery-store.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/** Maximum number of deliveries that are read in one statement. */
const BATCH = 200;

/** Maximum number of bytes of bodies that are read ahead at once. */
const MAX_BYTES = 1_048_576;

/** For how many milliseconds dispatch waits for a read, whose connection may have fallen silent. Meanwhile it hands out no new events. */
const PATIENCE = 150;

/**
 * Reads ahead what is needed to send deliveries that were handed out and are given to the workers in turns. Never rejects, and does not wait for a read
 * that takes long.
 */
export type ReadAhead = (handedOut: readonly HandedOut[]) => Promise<void>;

/**
 * Reads, in one statement, those of the first {@link BATCH} for the collectors of this process that have a reservation, unless it is only one.
 * Otherwise each would be read by itself when its turn comes, in competition with new events. What was not read ahead is still read when its turn
 * comes: also where memory is short, where the store has failed or is slow, and where another process sends it.
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
            // A read that is late goes on by itself, and reports its own failure.
            await within(done, { timeout: PATIENCE }).catch(() => undefined);
        }
    };
}
