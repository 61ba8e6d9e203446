import t from 'tap';
import { present } from '../../../../adapters/contract/assertions.ts';
import { heldOrderLaws } from '../../../../adapters/contract/webhooks/holding-laws.ts';
import {
    discardedOrderLaws,
    joinedOrderLaws,
    orderedKeyLaws,
    orderingLaws,
    retainedOrderLaws,
} from '../../../../adapters/contract/webhooks/ordering-laws.ts';
import type { StoredExporter } from '../../../../lib/webhooks/exporters/exporter.ts';
import { emptyWebhookStores } from '../../postgres/webhooks/empty-webhook-stores.ts';
import { handingOut, type Mutant, type Mutants, migratedPool, proveWebhookLaws, rewriting } from './mutants.ts';

const MUTANTS: Mutants = {
    'hands out one of a key after the other, in the order of acceptance, and those of others beside': inserting({ ordered: false }),
    'hands out at once what has a key and no other before it': withoutKeys(),
    'says that none are left that it may hand out while all wait for another of their key': (_, deliveries) => ({
        deliveries: { dispatch: async (options) => ({ ...(await deliveries.dispatch(options)), waitsFor: ['somebody'] }) },
    }),
    'lets what fails hold back its own key alone': (_, deliveries) => ({
        deliveries: rewriting(deliveries, (one) => ({ ...one, orderKey: 'the same' })),
    }),
    'lets places that wait behind another be those of others': handingOut((handedOut) => handedOut.slice(0, 1)),
    'hands out what has no key, tests and what is of another exporter as if there were no order': (_, deliveries) => ({
        deliveries: rewriting(deliveries, (one) => ({ orderKey: 'none', ...one })),
    }),
    'keeps the keys of exporters apart': handingOut((handedOut) => handedOut.slice(0, 1)),
    'goes on after one that failed for good': inserting({ afterExhausted: 'hold' }),
    'blocks a key after one that failed for good until that is replayed, where it is told to': inserting({ afterExhausted: 'skip' }),
    'lets a key go once what holds it is erased': (_, deliveries) => ({
        deliveries: { erase: async (id) => ({ ...present(await deliveries.event(id)), ended: 1 }) },
    }),
    'lets keys go that are held once it is told to go on': (exporters) => ({
        exporters: {
            update: async (id, { afterExhausted = 'skip', ...patch }) => ({ ...(await exporters.update(id, patch)), afterExhausted }),
        },
    }),
    'lets all go that waits once an exporter is not ordered any more, and orders what is accepted once it is': (exporters) => ({
        exporters: { update: async (id, { ordered = true, ...patch }) => ({ ...(await exporters.update(id, patch)), ordered }) },
    }),
    'keeps the turn of one whose claim has run out, and gives it up with one that is poisoned': inserting({ afterExhausted: 'hold' }),
    'gives the turn to the next when a success comes late': () => ({
        deliveries: { recordOutcomes: async (outcomes) => outcomes.map(() => false) },
    }),
    'sends a replay after what is in flight and before what waits': (_, deliveries) => ({
        deliveries: { replay: async (id) => present(await deliveries.get(id)) },
    }),
    'goes on in order after a pause and a stop': inserting({ ordered: false }),
    'cancels all of an exporter that is removed': () => ({ exporters: { remove: async () => true } }),
};

const RETAINED: Mutants = { 'keeps what blocks a key as long as it does': inserting({ afterExhausted: 'skip' }) };

const DISCARDED: Mutants = {
    'lets a key go once what holds it is discarded': (_, deliveries) => ({
        deliveries: { discard: async (id) => ({ ...present(await deliveries.get(id)), state: 'cancelled' }) },
    }),
    'lets the next of a key go once one that waits is discarded, and no other before its turn': inserting({ ordered: false }),
};

const JOINED: Mutants = {
    'hands out one after the other what was accepted in a transaction of the application': withoutKeys(),
    'waits for nothing that was rolled back': (_, deliveries) => ({
        deliveries: { accept: (newEvents, { tx: __, ...options } = {}) => deliveries.accept(newEvents, options) },
    }),
};

proveWebhookLaws(t, orderedKeyLaws, {
    'gives a repeated key of the caller the answer of then, in whatever order': (_, deliveries) => ({
        deliveries: rewriting(deliveries, ({ idempotency: __, ...one }) => one),
    }),
});
proveWebhookLaws(t, heldOrderLaws, {
    'keeps in order what it held while an exporter was stopped, once that is replayed': withoutKeys(),
});
proveWebhookLaws(t, orderingLaws, MUTANTS);
proveWebhookLaws(t, retainedOrderLaws, RETAINED);
proveWebhookLaws(t, discardedOrderLaws, DISCARDED);

t.test('on a store that joins transactions', async (t) => {
    const pool = await migratedPool(t);
    proveWebhookLaws(t, joinedOrderLaws, JOINED, () => emptyWebhookStores(pool));
});

/** Keeps other settings than it is given. */
function inserting(settings: Partial<StoredExporter>): Mutant {
    return (exporters) => ({ exporters: { insert: (exporter) => exporters.insert({ ...exporter, ...settings }) } });
}

/** Forgets order keys. */
function withoutKeys(): Mutant {
    return (_, deliveries) => ({ deliveries: rewriting(deliveries, ({ orderKey: __, ...one }) => one) });
}
