import t from 'tap';
import { joinedSubscriptionLaws, subscriptionLaws } from '../../../../adapters/contract/webhooks/subscription-laws.ts';
import type { DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { NewEvent, SubscribedExporters } from '../../../../lib/webhooks/events/new-event.ts';
import type { ExporterStore } from '../../../../lib/webhooks/exporters/exporter-store.ts';
import type { FormattedMessage } from '../../../../lib/webhooks/messages/formatted-message.ts';
import { emptyWebhookStores } from '../../postgres/webhooks/empty-webhook-stores.ts';
import { breakingTransactions, type Mutants, migratedPool, proveWebhookLaws, rewriting } from './mutants.ts';

const MUTANTS: Mutants = {
    'tells the running exporters that choose': (exporters) => ({
        exporters: telling(exporters, (told) => ({ ...told, exporters: told.exporters.slice(1) })),
    }),
    'passes by an exporter that has not chosen': (exporters, deliveries) => ({
        deliveries: {
            accept: async (newEvents, options) => {
                const all = (await exporters.subscribers?.())?.exporters ?? [];
                const subscribers = all.map(({ id }) => ({ exporterId: id, message: null }));
                return await deliveries.accept(
                    newEvents.map((one) => withSubscribers(one, () => subscribers)),
                    options,
                );
            },
        },
    }),
    'stores a delivery for every running exporter that has chosen': (_, deliveries) => ({
        deliveries: rewriting(deliveries, (one) => withSubscribers(one, (all) => all.slice(0, 1))),
    }),
    'hands out at once what was chosen': (_, deliveries) => ({
        deliveries: { accept: (newEvents) => deliveries.accept(newEvents) },
    }),
    'accepts by the revision that it told': (exporters) => ({
        exporters: telling(exporters, (told) => ({ ...told, revision: told.revision - 1 })),
    }),
    'stores nothing by an outdated revision': (_, deliveries) => ({ deliveries: acceptingAnyRevision(deliveries) }),
    'stores nothing by a revision from before an exporter stopped by itself': (_, deliveries) => ({
        deliveries: acceptingAnyRevision(deliveries),
    }),
    'keeps messages exactly, on every try': (_, deliveries) => ({
        deliveries: withMessages(deliveries, (message) => ({ ...message, body: message.body.replaceAll('\u2028', '\\u2028') })),
    }),
    'keeps why a message could not be made': (_, deliveries) => ({
        deliveries: withMessages(deliveries, (message) => ({ ...message, failure: null })),
    }),
    'keeps the message of a test': (_, deliveries) => ({
        deliveries: rewriting(deliveries, (one) => {
            return 'exporterId' in one.recipients ? { ...one, recipients: { exporterId: one.recipients.exporterId } } : one;
        }),
    }),
    'counts the bytes of messages, and reads no bodies beside them': (_, deliveries) => ({
        deliveries: { claim: (requests, session) => deliveries.claim(requests, session) },
    }),
};

const JOINED: Mutants = {
    'accepts in a transaction for those who choose in what it sees': (exporters) => ({
        exporters: telling(exporters, (told) => ({ ...told, revision: told.revision + 1 })),
    }),
    'leaves the transaction of the application usable when what was chosen is outdated': (_, deliveries) => ({
        deliveries: breakingTransactions(deliveries),
    }),
};

proveWebhookLaws(t, subscriptionLaws, MUTANTS);

t.test('on a store that joins transactions', async (t) => {
    const pool = await migratedPool(t);
    proveWebhookLaws(t, joinedSubscriptionLaws, JOINED, () => emptyWebhookStores(pool));
});

function telling(exporters: ExporterStore, change: (told: SubscribedExporters) => SubscribedExporters): Partial<ExporterStore> {
    return { subscribers: async (tx) => change((await exporters.subscribers?.(tx)) as SubscribedExporters) };
}

function acceptingAnyRevision(deliveries: DeliveryStore): Partial<DeliveryStore> {
    return { accept: (newEvents, { revision: _, ...options } = {}) => deliveries.accept(newEvents, options) };
}

type Subscribing = Extract<NewEvent['recipients'], { types: unknown }>['subscribers'];

function withSubscribers(one: NewEvent, change: (all: NonNullable<Subscribing>) => NonNullable<Subscribing>): NewEvent {
    const { recipients } = one;
    return 'types' in recipients ? { ...one, recipients: { ...recipients, subscribers: change(recipients.subscribers ?? []) } } : one;
}

function withMessages(deliveries: DeliveryStore, change: (message: FormattedMessage) => FormattedMessage): Partial<DeliveryStore> {
    return rewriting(deliveries, (one) =>
        withSubscribers(one, (all) =>
            all.map(({ exporterId, message }) => ({ exporterId, message: message === null ? null : change(message) })),
        ),
    );
}
