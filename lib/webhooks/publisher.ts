import type { Clock } from '../clock.ts';
import { ScanwireError } from '../errors.ts';
import type { Executor } from '../executor.ts';
import { batched } from './batched.ts';
import { type EventKinds, eventBody, type RuleSet, testEvent, typesFor } from './events.ts';
import type { Acceptance, Accepted, DeliveryStore } from './store.ts';

export interface PublishOptions {
    /** The rule set that raised the investigation; an exporter of type `investigation_legacy` does not get `library`. */
    readonly rules?: RuleSet;
    /**
     * An open transaction of the host's own: event and deliveries exist if and only if it commits. Needs a store on the same
     * database.
     */
    readonly tx?: Executor;
}

/**
 * Accepts an event: checks its body, freezes it as bytes and stores it with one delivery per exporter that wants it. Once
 * the promise resolves (with `tx`: once that transaction commits), the event survives the loss of process and queue.
 *
 * @throws ScanwireError `INVALID_INPUT` for an unknown kind or a body that breaks its schema (`field` names the place),
 *     `UNAVAILABLE` when the store cannot be reached; nothing is stored then.
 */
export type Publish = (kind: string, body: unknown, options?: PublishOptions) => Promise<Accepted>;

export interface PublisherParts {
    readonly kinds: EventKinds;
    readonly deliveries: DeliveryStore;
    readonly clock: Clock;
    readonly newId: () => string;
    /** Called after each acceptance, so that dispatching does not wait for its next look. */
    readonly onAccepted: () => void;
}

/** Events that arrive together share one statement, so many at most. */
const BATCH = 200;

export function publisher({ kinds, deliveries, clock, newId, onAccepted }: PublisherParts): Publish {
    const acceptBatched = batched<Acceptance, Accepted>((acceptances) => deliveries.accept(acceptances), BATCH);

    return async (kindName, body, { rules, tx } = {}) => {
        const kind = kinds.get(kindName);
        if (kind === undefined || kind === testEvent) {
            throw new ScanwireError('INVALID_INPUT', `Unknown event kind; known: ${publishable(kinds).join(', ')}`, { field: 'kind' });
        }

        if (rules !== undefined && rules !== 'legacy' && rules !== 'library') {
            throw new ScanwireError('INVALID_INPUT', 'rules must be legacy or library', { field: 'rules' });
        }

        const acceptance: Acceptance = {
            event: { id: newId(), kind: kind.name, body: eventBody(kind, body), createdAt: clock() },
            addressees: { types: typesFor(kind, rules ?? null) },
        };

        const accepted = tx === undefined ? await acceptBatched(acceptance) : await acceptWithin(tx, acceptance, deliveries);
        onAccepted();
        return accepted;
    };
}

async function acceptWithin(tx: Executor, acceptance: Acceptance, deliveries: DeliveryStore): Promise<Accepted> {
    if (!deliveries.transactions) {
        throw new ScanwireError('INVALID_INPUT', 'This delivery store cannot join a transaction', { field: 'tx' });
    }

    const [accepted] = await deliveries.accept([acceptance], { tx });
    return accepted as Accepted;
}

function publishable(kinds: EventKinds): string[] {
    return [...kinds.keys()].filter((name) => name !== testEvent.name);
}
