import { batched } from '../batched.ts';
import { ScanwireError } from '../errors.ts';
import { assertTransaction, type Executor } from '../transaction.ts';
import { RULE_SETS, type RuleSet } from './choices.ts';
import { eventBody, testEvent, typesFor } from './events.ts';
import type { WebhooksContext } from './options.ts';
import type { Acceptance, AcceptedEvent, NewEvent } from './store.ts';

/** What may be said about an event besides its body. */
export interface PublishOptions {
    /** The rule set that raised the investigation; an exporter of type `investigation_legacy` does not get `library`. */
    readonly rules?: RuleSet;
    /**
     * An open transaction of the application: event and deliveries exist if and only if it commits. Needs a store that keeps them
     * in the same database (`transactions`). `docs/webhook-exporter.md` has the few lines that make one of a query builder's.
     */
    readonly tx?: Executor;
}

/** An event that was accepted. */
export interface PublishedEvent extends AcceptedEvent {
    /**
     * Tells this process to look for it now; to be called after the commit of `tx`, by a host whose commits are not heard: where that is
     * switched off or impossible, it is found within a second otherwise.
     */
    readonly wake: () => void;
}

/**
 * Accepts an event: checks its body, freezes it as bytes and stores it with one delivery per exporter that wants it. Once
 * the promise resolves (with `tx`: once that transaction commits), the event survives the loss of process and queue.
 *
 * @throws ScanwireError `INVALID_INPUT` for an unknown kind or a body that breaks its schema or is too long, with the field;
 *     `MISCONFIGURED` for a `tx` that is no transaction, or with a store that cannot join one; `UNAVAILABLE` when the store cannot be
 *     reached. Nothing is stored then.
 */
export type Publish = (kind: string, body: unknown, options?: PublishOptions) => Promise<PublishedEvent>;

/** Maximum number of events that share one statement, and of statements at once: those that go on together do not see each other's. */
const BATCH = 100;
const LANES = 2;

/** Makes the `publish` of an event table and a store. */
export function publisher({ kinds, deliveries, maxBodyBytes, newId, dispatcher, session, grants, kept }: WebhooksContext): Publish {
    const acceptBatched = batched<NewEvent, Acceptance>(accept, BATCH, LANES);

    /** Those who publish wait for the rows and not for the queue. */
    async function accept(newEvents: readonly NewEvent[]): Promise<readonly Acceptance[]> {
        const handOut = dispatcher.handOut();
        const accepted = await deliveries.accept(newEvents, handOut === undefined ? {} : { handOut });
        const createdAt = grants.now();
        if (createdAt !== null && session.offers()) {
            for (const [index, { deliveries }] of accepted.entries()) {
                kept.keep(deliveries, { ...(newEvents[index] as NewEvent).event, createdAt });
            }
        }
        const handedOut = accepted.flatMap((one) => one.handedOut);
        if (handedOut.length > 0) {
            dispatcher.add(handedOut);
        }
        if (accepted.some(({ deliveries, handedOut }) => handedOut.length < deliveries.length)) {
            dispatcher.wake();
        }
        return accepted;
    }

    return async (kindName, body, { rules, tx } = {}) => {
        const kind = kinds.get(kindName);
        if (kind === undefined || kind === testEvent) {
            const known = [...kinds.keys()].filter((name) => name !== testEvent.name);
            throw new ScanwireError('INVALID_INPUT', `Unknown event kind; known: ${known.join(', ')}`, { field: 'kind' });
        }

        if (rules !== undefined && !RULE_SETS.includes(rules)) {
            throw new ScanwireError('INVALID_INPUT', `Rules must be ${RULE_SETS.join(' or ')}`, { field: 'rules' });
        }

        if (tx !== undefined) {
            assertTransaction(tx);
        }

        const event = { id: newId(), kind: kind.name, body: eventBody(kind, body, maxBodyBytes) };
        const newEvent: NewEvent = { event, recipients: { types: typesFor(kind, rules ?? null) } };
        const accepted = tx === undefined ? await acceptBatched(newEvent) : (await deliveries.accept([newEvent], { tx }))[0];
        const { eventId, deliveries: ids } = accepted as Acceptance;
        return { eventId, deliveries: ids, wake: dispatcher.wake };
    };
}
