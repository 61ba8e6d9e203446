import { batched } from '../../batched.ts';
import type { Acceptance } from '../deliveries/delivery-store.ts';
import type { UnroutedEvent } from './event-routing.ts';

/** Maximum number of events that share one statement. */
const BATCH = 100;

/** Maximum number of such statements at once. Few, since none sees what the others hand out meanwhile: together they can exceed an exporter's window. */
const STATEMENTS_AT_ONCE = 2;

/** An event, and who may withdraw it. */
interface AskedEvent {
    readonly event: UnroutedEvent;
    readonly signal: AbortSignal | undefined;
}

/** Stores events. What has not begun when the signal is aborted rejects with its reason. */
type Accept = (events: readonly UnroutedEvent[], signal: AbortSignal | undefined) => Promise<readonly Acceptance[]>;

/**
 * Lets events of many callers share statements. What is withdrawn before its statement has begun rejects with the reason of its signal, and those
 * that shared it go on without it.
 */
export function sharedAcceptance(accept: Accept): (event: UnroutedEvent, signal: AbortSignal | undefined) => Promise<Acceptance> {
    const acceptBatched = batched(acceptTogether, BATCH, STATEMENTS_AT_ONCE);
    // In statements of their own: they may wait for others of their keys, and must not keep others waiting.
    const acceptOrdered = batched(acceptTogether, BATCH, STATEMENTS_AT_ONCE);

    /** Null for what was withdrawn. */
    async function acceptTogether(asked: readonly AskedEvent[]): Promise<readonly (Acceptance | null)[]> {
        const left = asked.filter(({ signal }) => signal?.aborted !== true);
        const withdrawal = anyOf(left);
        try {
            const accepted =
                left.length === 0
                    ? []
                    : await accept(
                          left.map(({ event }) => event),
                          withdrawal,
                      );
            const ofEach = new Map(left.map((one, index) => [one, accepted[index] as Acceptance]));
            return asked.map((one) => ofEach.get(one) ?? null);
        } catch (error) {
            if (withdrawal?.aborted === true && error === withdrawal.reason) {
                return await acceptTogether(asked);
            }
            throw error;
        }
    }

    return async (event, signal) => {
        const asked = { event, signal };
        const together = event.orderKey === undefined ? acceptBatched : acceptOrdered;
        // A key that is refused must refuse nothing else.
        const acceptance = event.idempotency === undefined ? await together(asked) : (await acceptTogether([asked]))[0];
        if (!acceptance) {
            throw signal?.reason;
        }
        return acceptance;
    };
}

/** Aborted as soon as one of them is withdrawn; undefined where none can be. */
function anyOf(asked: readonly AskedEvent[]): AbortSignal | undefined {
    const signals = asked.flatMap(({ signal }) => signal ?? []);
    return signals.length === 0 ? undefined : AbortSignal.any(signals);
}
