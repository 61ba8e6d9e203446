import { readyBatches } from '../../batched.ts';
import { ScanwireError } from '../../errors.ts';
import type { Acceptance } from '../deliveries/delivery-store.ts';
import type { UnroutedEvent } from './event-routing.ts';

/*
 * Events with idempotency keys share statements with each other: without one a statement does less and waits for nobody. An open transaction may have
 * a key, and a key may stand for another event. So that neither is at the cost of others:
 *
 * - Of one key there is one event at a time. Who comes meanwhile with the same key gets the answer of the first, or its refusal, from the store.
 * - A list that is refused is halved until what is refused is alone: a few statements more, and not one for each event.
 * - A list waits for a locked key for a moment only. Then each of its events goes alone, beside other lists.
 * - There is one list at a time, which others need not wait for.
 */

/** How events are accepted. */
export interface KeyedSteps {
    /** Stores events in one statement, as far as {@link AcceptOptions.lockTimeout} lets it. */
    accept(events: readonly UnroutedEvent[], lockTimeout: number): Promise<readonly Acceptance[]>;
    /** Stores an event whose key may be locked, for which that is waited. However many there are, they take few connections. */
    acceptLocked(event: UnroutedEvent): Promise<Acceptance>;
    /** Maximum number of events in a statement. */
    readonly limit: number;
}

/** Milliseconds for which events wait for a key that is locked before they go alone. */
const LOCK_TIMEOUT = 50;

interface Candidate {
    readonly event: UnroutedEvent;
    /** The idempotency key with its owner. */
    readonly key: string;
}

/** What became of an event: throws its refusal. */
type Answer = () => Acceptance | Promise<Acceptance>;

/** Accepts events with idempotency keys and without order keys, each by a call of its own. */
export function keyedAcceptance({ accept, acceptLocked, limit }: KeyedSteps): (event: UnroutedEvent) => Promise<Acceptance> {
    /** Keys that somebody else has, for which events wait alone. */
    const locked = new Set<string>();
    const together = readyBatches<Candidate, Answer>(answers, (waiting) => ofDifferentKeys(waiting).slice(0, limit));

    /** Of keys that have been found to be locked since, events go alone too. */
    async function answers(candidates: readonly Candidate[]): Promise<readonly Answer[]> {
        const free = candidates.filter(({ key }) => !locked.has(key));
        const given = free.length === 0 ? [] : await answersOfFree(free);
        const answerOf = new Map(free.map((candidate, index) => [candidate, given[index] as Answer]));
        return candidates.map((candidate) => answerOf.get(candidate) ?? (() => alone(candidate)));
    }

    /** Never rejects: some may have been accepted before others are refused. */
    async function answersOfFree(candidates: readonly Candidate[]): Promise<readonly Answer[]> {
        try {
            const accepted = await accept(
                candidates.map(({ event }) => event),
                LOCK_TIMEOUT,
            );
            return accepted.map((one, index) => (one.locked === true ? leftOut(candidates[index] as Candidate) : () => one));
        } catch (error) {
            const isForAll = error instanceof ScanwireError && error.code === 'UNAVAILABLE';
            if (isForAll || candidates.length === 1) {
                return candidates.map(() => () => {
                    throw error;
                });
            }
            const middle = candidates.length >> 1;
            return [...(await answersOfFree(candidates.slice(0, middle))), ...(await answersOfFree(candidates.slice(middle)))];
        }
    }

    function leftOut(candidate: Candidate): Answer {
        locked.add(candidate.key);
        return () => alone(candidate);
    }

    async function alone({ event, key }: Candidate): Promise<Acceptance> {
        locked.add(key);
        try {
            return await acceptLocked(event);
        } finally {
            locked.delete(key);
        }
    }

    return async (event) => {
        const candidate = { event, key: ownedKeyOf(event) };
        if (locked.has(candidate.key)) {
            return await alone(candidate);
        }
        const answer = await together.add(candidate);
        return await answer();
    };
}

/** The idempotency key of an event, which is its owner's: a text that no other has. */
export function ownedKeyOf({ owner, idempotency }: Pick<UnroutedEvent, 'owner' | 'idempotency'>): string {
    return JSON.stringify([owner, idempotency?.key]);
}

/** The first of each key. */
function ofDifferentKeys<Call extends { readonly item: Candidate }>(calls: readonly Call[]): readonly Call[] {
    const firsts = new Map<string, Call>();
    for (const call of calls) {
        if (!firsts.has(call.item.key)) {
            firsts.set(call.item.key, call);
        }
    }
    return [...firsts.values()];
}
