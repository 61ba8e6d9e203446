import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import t from 'tap';
import { present, until } from '../../../../adapters/contract/assertions.ts';
import {
    acceptanceLaws,
    noTransactionLaws,
    notificationLaws,
    transactionLaws,
} from '../../../../adapters/contract/webhooks/acceptance-laws.ts';
import { forAll, sampleEvent } from '../../../../adapters/contract/webhooks/fixture.ts';
import type { DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { Listening } from '../../../../lib/webhooks/dispatching/outlook.ts';
import { emptyWebhookStores } from '../../postgres/webhooks/empty-webhook-stores.ts';
import { breakingTransactions, type Mutants, migratedPool, proveWebhookLaws, rewriting } from './mutants.ts';

const MUTANTS: Mutants = {
    'stores a pending delivery for every running exporter of the types': (_, deliveries) => ({
        deliveries: {
            ...rewriting(deliveries, (one) => {
                return 'types' in one.recipients ? { ...one, recipients: { types: one.recipients.types.slice(0, 1) } } : one;
            }),
        },
    }),
    'accepts an event that nobody receives': (_, deliveries) => ({
        deliveries: {
            ...rewriting(deliveries, (one) => ({ ...one, event: { ...one.event, id: randomUUID() } })),
        },
    }),
    'stores a test for a stopped exporter': (_, deliveries) => ({
        deliveries: { ...rewriting(deliveries, (one) => ({ ...one, recipients: { types: ['investigation'] } })) },
    }),
    'answers in the order of the events': (_, deliveries) => ({
        deliveries: { accept: async (newEvents) => (await deliveries.accept(newEvents)).toReversed() },
    }),
    'stores nothing when one of the named exporters does not exist': (_, deliveries) => ({ deliveries: { accept: oneByOne(deliveries) } }),
    'stores nothing when one of the event ids is taken': (_, deliveries) => ({ deliveries: { accept: oneByOne(deliveries) } }),
    'accepts one of many events with the same id': (_, deliveries) => ({
        deliveries: {
            accept: (newEvents) => {
                const renamed = newEvents.map((one) => ({ ...one, event: { ...one.event, id: randomUUID() } }));
                return deliveries.accept(newEvents).catch(() => deliveries.accept(renamed));
            },
        },
    }),
    'names the exporters that have no room, if any': (_, deliveries) => ({
        deliveries: {
            accept: async (...given) => (await deliveries.accept(...given)).map((one) => ({ ...one, leftFor: [] })),
        },
    }),
    'keeps bodies exactly': (_, deliveries) => ({
        deliveries: {
            ...rewriting(deliveries, (one) => {
                return { ...one, event: { ...one.event, body: one.event.body.replaceAll('\u2028', '\\u2028') } };
            }),
        },
    }),
    'does nothing when given nothing': (_, deliveries) => ({
        deliveries: { claim: async (requests, session) => (requests.length === 0 ? [null] : await deliveries.claim(requests, session)) },
    }),
};

const REFUSING: Mutants = {
    'refuses a transaction of the application': (_, deliveries) => ({
        deliveries: { accept: (newEvents) => deliveries.accept(newEvents) },
    }),
    'listens for no transactions that it cannot join': () => ({
        deliveries: { listen: () => ({ ready: Promise.resolve(), close: async () => {} }) },
    }),
};

const JOINING: Mutants = {
    'joins a transaction of the application': (_, deliveries) => ({
        deliveries: { accept: (newEvents) => deliveries.accept(newEvents) },
    }),
    'hands nothing out in a transaction of the application': (_, deliveries) => ({
        deliveries: {
            accept: (newEvents, { handOut } = {}) => deliveries.accept(newEvents, handOut === undefined ? {} : { handOut }),
        },
    }),
    'leaves the transaction of the application usable after a refusal': (_, deliveries) => ({
        deliveries: breakingTransactions(deliveries),
    }),
};

proveWebhookLaws(t, { ...acceptanceLaws, ...noTransactionLaws }, { ...MUTANTS, ...REFUSING });

t.test('on a store that joins transactions', async (t) => {
    const pool = await migratedPool(t);
    const mutants = { ...JOINING, ...notifying(pool) };
    proveWebhookLaws(t, { ...transactionLaws, ...notificationLaws }, mutants, () => emptyWebhookStores(pool));
});

function notifying(pool: pg.Pool): Mutants {
    return {
        'makes a commit heard, and not before': (_, deliveries) => {
            let tell = (): void => {};
            return {
                deliveries: {
                    accept: (newEvents, options) => deliveries.accept(newEvents, options).finally(tell),
                    listen: (heard, onError) => {
                        tell = heard;
                        return listeningTo(deliveries, heard, onError);
                    },
                },
            };
        },
        // By a commit of its own, which has been heard before it goes on: the common channel may still be that of a connection which was closed a
        // moment ago, and the law stops listening once it has heard of one.
        'makes nothing heard of a rollback': (_, deliveries) => {
            let count = 0;
            return {
                deliveries: {
                    accept: async (newEvents, options) => {
                        const before = count;
                        const tx = await pool.connect();
                        await tx.query('begin');
                        await deliveries.accept([forAll(sampleEvent())], { tx });
                        await tx.query('commit');
                        tx.release();
                        await until(() => count > before, 5_000);
                        return await deliveries.accept(newEvents, options);
                    },
                    listen: (heard, onError) => {
                        const counted = (): void => {
                            count += 1;
                            heard();
                        };
                        return listeningTo(deliveries, counted, onError);
                    },
                },
            };
        },
        'makes the commit of many events heard once': (_, deliveries) => ({
            deliveries: {
                accept: async (newEvents, options) => {
                    await options?.tx?.query(`select pg_notify('scanwire', $1)`, [randomUUID()]);
                    return await deliveries.accept(newEvents, options);
                },
            },
        }),
        'makes a commit heard by somebody who listens still': (_, deliveries) => {
            const told: (() => void)[] = [];
            const tell = (): void => {
                for (const heard of told) {
                    heard();
                }
            };
            return {
                deliveries: {
                    listen: (heard, onError) => {
                        told.push(heard);
                        return listeningTo(deliveries, tell, onError);
                    },
                },
            };
        },
        'hands out what was committed and not heard of': () => ({
            deliveries: { dispatch: async () => ({ handedOut: [], waitsFor: [] }) },
        }),
    };
}

function listeningTo({ listen }: DeliveryStore, ...how: Parameters<NonNullable<DeliveryStore['listen']>>): Listening {
    return present(listen?.(...how));
}

function oneByOne(deliveries: DeliveryStore): DeliveryStore['accept'] {
    return async (newEvents) => {
        const accepted = [];
        for (const one of newEvents) {
            accepted.push(...(await deliveries.accept([one])));
        }
        return accepted;
    };
}
