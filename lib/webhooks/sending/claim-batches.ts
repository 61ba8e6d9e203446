import { type ReadyBatches, readyBatches } from '../../batched.ts';
import type { Claim, ClaimRequest } from '../deliveries/delivery-store.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { bodyBytes } from './message-cache.ts';
import { STATEMENTS_AT_ONCE } from './outcome-recorder.ts';

/** Maximum number of claims that share one statement. */
const BATCH = 200;

/** Bytes of the bodies of tests that one statement may read even when memory is short: such a body has a few hundred. */
const BYTES_OF_TESTS = 65_536;

/** A claim that waits until there is memory for its body. */
export interface WaitingClaim {
    readonly request: ClaimRequest;
    /** Empty when it is not known. */
    readonly exporterId: string;
    /** Whether it is the claim of a test, which does not wait for memory. */
    readonly singleAttempt: boolean;
    /** Whether it is to wait no longer: the reservation has run out, or may do so before there is memory, or the worker stops. The delivery is then handed out again. */
    givesUp(): boolean;
}

/** A claim that the store has answered with. */
export interface ReadClaim extends Claim {
    /** When the store was asked for it, in milliseconds of this process's own, monotonic time: its settings are no older. */
    readonly asked: number;
}

/** Claims share statements. A claim waits while its exporter has all the bytes that it may have, without keeping others waiting. */
export function claimBatches({
    deliveries,
    session,
    messageCache,
    bodyMemory,
    traces,
    monotonic,
}: WebhooksContext): ReadyBatches<WaitingClaim, ReadClaim | null> {
    /** Maximum number of bytes that the statements under way may read. */
    let expected = 0;

    /** The next claims: those that give up; else tests; else those whose exporters may take a body, the exporters with the fewest bytes first. */
    function next<Waiting extends { readonly item: WaitingClaim }>(
        waiting: readonly Waiting[],
        underWay: Iterable<Waiting>,
    ): readonly Waiting[] {
        const leaving = waiting.filter(({ item }) => item.givesUp());
        if (leaving.length > 0) {
            return leaving;
        }

        const busy = new Set(Array.from(underWay, ({ item }) => item.request.deliveryId));
        const free = waiting.filter(({ item: { request } }) => !busy.has(request.deliveryId));
        const tests = free.filter(({ item }) => item.singleAttempt);
        if (tests.length > 0) {
            return tests.slice(0, BATCH);
        }

        const ready = free.filter(({ item: { exporterId } }) => bodyMemory.allowance(exporterId, expected) > 0);
        return ready.sort((a, b) => bodyMemory.bytesOf(a.item.exporterId) - bodyMemory.bytesOf(b.item.exporterId)).slice(0, BATCH);
    }

    /** Claims in one statement. How much of it each exporter gets is not known before bodies are read: all together get the smallest of their allowances. */
    async function claim(waiting: readonly WaitingClaim[]): Promise<readonly (ReadClaim | null)[]> {
        if (waiting.every(({ givesUp }) => givesUp())) {
            return waiting.map(() => null);
        }

        const maxBytes = Math.min(
            ...waiting.map(({ exporterId, singleAttempt }) => {
                return Math.max(bodyMemory.allowance(exporterId, expected), singleAttempt ? BYTES_OF_TESTS : 0);
            }),
        );
        const requests = waiting.map(({ request }) => request);
        // Whoever changes settings waits for all of it, and then forgets what it has brought.
        return await messageCache.duringRead(read(requests, maxBytes));
    }

    async function read(requests: readonly ClaimRequest[], maxBytes: number): Promise<readonly (ReadClaim | null)[]> {
        const asked = monotonic();
        expected += maxBytes;
        let claimed: readonly (Claim | null)[];
        try {
            claimed = await deliveries.claim(requests, session.id, maxBytes);
            for (const one of claimed) {
                if (one !== null) {
                    bodyMemory.take(one.exporter.id, bodyBytes(one));
                }
            }
        } finally {
            expected -= maxBytes;
        }
        const traced = await traces.withTraceparents(claimed);
        return traced.map((one) => {
            if (one !== null) {
                messageCache.addSettings(one);
            }
            return one && { ...one, asked };
        });
    }

    const claims = readyBatches<WaitingClaim, ReadClaim | null>(claim, next, STATEMENTS_AT_ONCE);
    bodyMemory.whenFreed(claims.proceed);
    return claims;
}
