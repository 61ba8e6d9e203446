import { randomUUID } from 'node:crypto';
import t from 'tap';
import { idempotencyLaws, joinedIdempotencyLaws } from '../../../../adapters/contract/webhooks/idempotency-laws.ts';
import type { IdempotencyKey, NewEvent } from '../../../../lib/webhooks/events/new-event.ts';
import { emptyWebhookStores } from '../../postgres/webhooks/empty-webhook-stores.ts';
import { type Mutants, migratedPool, proveWebhookLaws, rewriting } from './mutants.ts';

const MUTANTS: Mutants = {
    'answers a repeated key with what was accepted before': (_, deliveries) => ({
        deliveries: rewriting(deliveries, ({ idempotency: __, ...one }) => one),
    }),
    'answers a repeated key when nobody wanted the event': (_, deliveries) => ({
        deliveries: {
            async accept(newEvents, options) {
                const accepted = await deliveries.accept(newEvents, options);
                // What has no deliveries is taken for what was not accepted.
                const none = accepted.every((one) => one.deliveries.length === 0);
                return none
                    ? await deliveries
                          .accept(
                              newEvents.map(({ idempotency: __, ...one }) => one),
                              options,
                          )
                          .catch(() => accepted)
                    : accepted;
            },
        },
    }),
    'keeps the keys of owners apart': (_, deliveries) => ({
        deliveries: rewriting(deliveries, ({ owner: __, ...one }) => one),
    }),
    'stores nothing when a key stands for another event': (_, deliveries) => ({
        deliveries: rewriting(deliveries, (one) => withKey(one, (key) => ({ ...key, digest: '' }))),
    }),
    'keeps no key of an event that was there before without it': (_, deliveries) => {
        const refused = new Map<string | undefined, string>();
        return {
            deliveries: {
                async accept(newEvents, options) {
                    const { event, idempotency } = newEvents[0] as NewEvent;
                    const eventId = refused.get(idempotency?.key);
                    try {
                        return eventId === undefined
                            ? await deliveries.accept(newEvents, options)
                            : [{ eventId, deliveries: [], handedOut: [] }];
                    } catch (error) {
                        refused.set(idempotency?.key, event.id);
                        throw error;
                    }
                },
            },
        };
    },
    'accepts one of many under the same key': (_, deliveries) => {
        let calls = 0;
        return {
            deliveries: rewriting(deliveries, (one) => {
                calls += 1;
                return withKey(one, (key) => (calls === 5 ? { ...key, key: 'another' } : key));
            }),
        };
    },
};

const JOINED: Mutants = {
    'frees a key with the transaction of the application that does not commit': (_, deliveries) => ({
        // It keeps the key, with another event, whatever becomes of the transaction.
        deliveries: {
            accept: async (newEvents, options = {}) => {
                await deliveries.accept(
                    newEvents.map((one) => ({ ...one, event: { ...one.event, id: randomUUID() }, recipients: { types: [] } })),
                );
                return await deliveries.accept(newEvents, options);
            },
        },
    }),
};

proveWebhookLaws(t, idempotencyLaws, MUTANTS);

t.test('on a store that joins transactions', async (t) => {
    const pool = await migratedPool(t);
    proveWebhookLaws(t, joinedIdempotencyLaws, JOINED, () => emptyWebhookStores(pool));
});

function withKey(one: NewEvent, change: (key: IdempotencyKey) => IdempotencyKey): NewEvent {
    return one.idempotency === undefined ? one : { ...one, idempotency: change(one.idempotency) };
}
