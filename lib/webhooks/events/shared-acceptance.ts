import { readyBatches } from '../../batched.ts';
import { ScanwireError } from '../../errors.ts';
import type { Acceptance } from '../deliveries/delivery-store.ts';
import type { UnroutedEvent } from './event-routing.ts';

/*
 * Events without order keys share statements: those without an idempotency key with each other, since without one a statement does less and waits for
 * nobody, and those with one with each other. An open transaction may have an idempotency key, and a key may stand for another event. So that neither
 * is at the cost of others:
 *
 * - Of one key there is one event at a time. Who comes meanwhile with the same key gets the answer of the first, or its refusal, from the store.
 * - A list that is refused is halved until what is refused is alone: a few statements more, and not one for each event.
 * - A list waits for a locked key for a moment only. Then each of its events has a statement of its own, beside all others.
 */

/** How events are accepted. */
export interface SharedSteps {
    /** Stores events in one statement, as far as {@link AcceptOptions.lockTimeout} lets it. */
    accept(events: readonly UnroutedEvent[], lockTimeout?: number): Promise<readonly Acceptance[]>;
    /** Stores an event whose key is locked, for which that is waited. */
    acceptLocked(event: UnroutedEvent): Promise<Acceptance>;
    /** Maximum number of events in a statement. */
    readonly limit: number;
    /** Maximum number of statements at once. */
    readonly runs: number;
}

/** Milliseconds for which events with idempotency keys wait for one that is locked before they go alone. */
const LOCK_TIMEOUT = 50;

interface Candidate {
    readonly event: UnroutedEvent;
    /** The idempotency key with its owner; null without one. */
    readonly key: string | null;
}

/** What became of an event: throws its refusal. */
type Answer = () => Acceptance | Promise<Acceptance>;

/** Accepts events without order keys, each by a call of its own. */
export function sharedAcceptance({ accept, acceptLocked, limit, runs }: SharedSteps): (event: UnroutedEvent) => Promise<Acceptance> {
    /** Keys that somebody else has, for which events wait alone. */
    const locked = new Set<string>();
    const together = readyBatches<Candidate, Answer>(answers, (waiting, underWay) => next(waiting, underWay, limit), { runs });

    async function answers(candidates: readonly Candidate[]): Promise<readonly Answer[]> {
        if (candidates[0]?.key == null) {
            const accepted = await accept(candidates.map(({ event }) => event));
            return accepted.map((one) => () => one);
        }
        return await keyedAnswers(candidates);
    }

    /** Never rejects: some may have been accepted before others are refused. */
    async function keyedAnswers(candidates: readonly Candidate[]): Promise<readonly Answer[]> {
        try {
            const accepted = await accept(
                candidates.map(({ event }) => event),
                LOCK_TIMEOUT,
            );
            return accepted.map((one, index) => (one.locked === true ? () => alone(candidates[index] as Candidate) : () => one));
        } catch (error) {
            const isForAll = error instanceof ScanwireError && error.code === 'UNAVAILABLE';
            if (isForAll || candidates.length === 1) {
                return candidates.map(() => () => {
                    throw error;
                });
            }
            const middle = candidates.length >> 1;
            return [...(await keyedAnswers(candidates.slice(0, middle))), ...(await keyedAnswers(candidates.slice(middle)))];
        }
    }

    async function alone({ event, key }: Candidate): Promise<Acceptance> {
        locked.add(key as string);
        try {
            return await acceptLocked(event);
        } finally {
            locked.delete(key as string);
        }
    }

    return async (event) => {
        const candidate = { event, key: keyOf(event) };
        if (candidate.key !== null && locked.has(candidate.key)) {
            return await alone(candidate);
        }
        const answer = await together.add(candidate);
        return await answer();
    };
}

function keyOf({ owner, idempotency }: UnroutedEvent): string | null {
    return idempotency === undefined ? null : JSON.stringify([owner, idempotency.key]);
}

/** Those that go into the next statement: with the first that may go, all of its sort, and of each key one. */
function next<Call extends { readonly item: Candidate }>(
    waiting: readonly Call[],
    underWay: Iterable<Call>,
    limit: number,
): readonly Call[] {
    const keys = new Set<string | null>();
    for (const { item } of underWay) {
        keys.add(item.key);
    }
    keys.delete(null);

    const batch: Call[] = [];
    for (const call of waiting) {
        const { key } = call.item;
        const isOfSort = batch.length === 0 || (batch[0]?.item.key === null) === (key === null);
        if (isOfSort && !keys.has(key)) {
            batch.push(call);
            if (batch.length === limit) {
                break;
            }
            if (key !== null) {
                keys.add(key);
            }
        }
    }
    return batch;
}
