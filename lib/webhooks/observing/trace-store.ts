import { batched } from '../../batched.ts';
import { within } from '../../within.ts';
import type { Claim } from '../deliveries/delivery-store.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/** In which span an event was published. */
export interface Trace {
    readonly eventId: string;
    /** As W3C Trace Context writes it, 55 characters. */
    readonly traceparent: string;
}

/** Keeps traces beside events, for attempts that are made in other processes, or later. */
export interface TraceStore {
    /** Whether `accept` keeps the traces of what it stores outside a transaction of the application, in the same statement. */
    readonly keptByAccept?: boolean;
    /** Keeps traces in one statement, before or after their events are accepted. The first trace of an event stays. */
    keep(traces: readonly Trace[]): Promise<void>;
    /** The `traceparent` of those of these events that have one, by their ids. */
    of(eventIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** What this process keeps of traces, and reads of them. What fails is reported: no delivery waits or ends for its trace. */
export interface Traces {
    /**
     * Keeps what accepting these events does not. Never rejects.
     *
     * @param joined Whether they are accepted in a transaction of the application.
     */
    keep(eventIds: readonly string[], traceparent: string, joined: boolean): Promise<void>;
    /** The same claims, their events with the traces that are known. */
    withTraceparents(claims: readonly (Claim | null)[]): Promise<readonly (Claim | null)[]>;
}

/** Milliseconds that claims wait for their traces: a small part of the time that an attempt must end in. */
const PATIENCE = 500;

/** Maximum number of publishes whose traces share one statement. */
const BATCH = 100;

/** The traces of a process. Without tracing, or with a store that keeps no traces, they cost nothing. */
export function tracesOf({
    deliveries: { traces },
    tracing,
    onError,
}: Pick<WebhooksContext, 'deliveries' | 'tracing' | 'onError'>): Traces {
    if (traces === undefined || tracing === null) {
        return { keep: async () => {}, withTraceparents: async (claims) => claims };
    }

    const keepBatched = batched<readonly Trace[], undefined>(async (lists) => {
        await traces.keep(lists.flat());
        return lists.map(() => undefined);
    }, BATCH);

    const read = async (claims: readonly (Claim | null)[]): Promise<readonly (Claim | null)[]> => {
        const eventIds = claims.flatMap((claim) => (claim === null ? [] : [claim.event.id]));
        const known = eventIds.length === 0 ? new Map<string, string>() : await traces.of([...new Set(eventIds)]);
        return claims.map((claim) => {
            const traceparent = claim === null ? undefined : known.get(claim.event.id);
            return claim === null || traceparent === undefined ? claim : { ...claim, event: { ...claim.event, traceparent } };
        });
    };

    return {
        async keep(eventIds, traceparent, joined) {
            if (!joined && traces.keptByAccept === true) {
                return;
            }
            await keepBatched(eventIds.map((eventId) => ({ eventId, traceparent }))).catch(onError);
        },

        withTraceparents: (claims) =>
            within(read(claims), { timeout: PATIENCE }).catch((error: Error) => {
                onError(error);
                return claims;
            }),
    };
}
