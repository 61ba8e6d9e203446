import { readyBatches } from '../../batched.ts';
import type { Acceptance } from '../deliveries/delivery-store.ts';
import { ACCEPTANCES_AT_ONCE } from '../dispatching/acceptance-limit.ts';
import type { UnroutedEvent } from './event-routing.ts';
import { ownedKeyOf } from './keyed-acceptance.ts';

/*
 * A list is stored by one statement, as a whole or not at all. An open transaction may have any of its keys, and whoever waits for that within the statement
 * keeps a connection for as long. So a list that finds a key locked stores nothing and comes again behind the others that wait for keys, which share few
 * connections. Most lists find all their keys free: they are stored by the first statement. What has a key of a list that waits waits at once, so that
 * repeats of it keep no others from that statement.
 */

/** How lists are accepted. */
export interface ListSteps {
    /** Stores a list in one statement, as far as {@link AcceptOptions.lockTimeout} lets it: else nothing of it. */
    accept(events: readonly UnroutedEvent[], lockTimeout: number): Promise<readonly Acceptance[]>;
    /** Stores a list of which a key may be locked, for which that is waited. However many there are, they take few connections. */
    acceptLocked(events: readonly UnroutedEvent[]): Promise<readonly Acceptance[]>;
}

/** Milliseconds for which a list waits for its keys before it gives its connection back. */
const LOCK_TIMEOUT = 50;

interface List {
    readonly events: readonly UnroutedEvent[];
    readonly keys: readonly string[];
}

/** Accepts lists of events of which some have keys. */
export function listAcceptance({ accept, acceptLocked }: ListSteps): (events: readonly UnroutedEvent[]) => Promise<readonly Acceptance[]> {
    /** How many lists that wait have a key. */
    const waiting = new Map<string, number>();
    /** Null of a list that has to wait. */
    const first = readyBatches<List, readonly Acceptance[] | null>(
        async ([list]) => [await acceptedAtOnce(list as List)],
        (lists) => lists.slice(0, 1),
        { runs: ACCEPTANCES_AT_ONCE },
    );

    async function acceptedAtOnce({ events, keys }: List): Promise<readonly Acceptance[] | null> {
        if (keys.some((key) => waiting.has(key))) {
            return null;
        }
        const accepted = await accept(events, LOCK_TIMEOUT);
        return accepted[0]?.locked === true ? null : accepted;
    }

    return async (events) => {
        const keys = events.flatMap(keysOf);
        const accepted = await first.add({ events, keys });
        if (accepted !== null) {
            return accepted;
        }

        for (const key of keys) {
            waiting.set(key, (waiting.get(key) ?? 0) + 1);
        }
        try {
            return await acceptLocked(events);
        } finally {
            for (const key of keys) {
                const others = (waiting.get(key) ?? 1) - 1;
                others === 0 ? waiting.delete(key) : waiting.set(key, others);
            }
        }
    };
}

/** Whether somebody else may have a key of the event. */
export function hasKey({ idempotency, orderKey }: UnroutedEvent): boolean {
    return idempotency !== undefined || orderKey !== undefined;
}

function keysOf(event: UnroutedEvent): readonly string[] {
    const { idempotency, orderKey } = event;
    return [
        ...(idempotency === undefined ? [] : [`idempotency ${ownedKeyOf(event)}`]),
        ...(orderKey === undefined ? [] : [`order ${orderKey}`]),
    ];
}
