import t from 'tap';
import { settlementLaws } from '../../../../adapters/contract/webhooks/settlement-laws.ts';
import type { DeliveryStore, Settlement } from '../../../../lib/webhooks/store.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
    'records what was delivered': (_, deliveries) => ({
        deliveries: { attempts: async (id) => (await deliveries.attempts(id)).map((attempt) => ({ ...attempt, late: true })) },
    }),
    'plans the next try': telling((one) => {
        return one.next.state === 'pending' ? { ...one, next: { state: 'pending', dueAt: one.finishedAt } } : one;
    }),
    'records what is exhausted': telling((one) => ({ ...one, next: { state: 'delivered' } })),
    'keeps an outcome exactly': telling((one) => {
        return { ...one, outcome: { ...one.outcome, detail: one.outcome.detail.replaceAll('\u0000', '') } };
    }),
    'answers settlements in the order given': (_, deliveries) => ({
        deliveries: { settle: async (settlements) => (await deliveries.settle(settlements)).toSorted() },
    }),
    'changes nothing for a token that never held the claim': withoutFence,
    'completes only the attempt when the claim was lost': (exporters, deliveries) => ({
        deliveries: {
            settle: async (settlements) => {
                for (const { exporterId, finishedAt } of settlements) {
                    await exporters.update(exporterId, { state: 'stopped' }, finishedAt);
                }
                return await deliveries.settle(settlements);
            },
        },
    }),
    'leaves the present claim alone when an earlier one is settled late': withoutFence,
    'settles a claim once': alwaysHeld,
    'settles a claim that has run out and was not taken away': (_, deliveries) => ({
        deliveries: {
            settle: async (settlements) => {
                for (const { finishedAt } of settlements) {
                    await deliveries.sweep({ now: finishedAt, queuedBefore: new Date(0), limit: 100 });
                }
                return await deliveries.settle(settlements);
            },
        },
    }),
    'lets one of many settlements at once win': alwaysHeld,
    'counts the failures of an exporter': telling((one, index) => (index === 0 ? one : { ...one, health: 'none' })),
    'counts failures in the order given, since the last success': (_, deliveries) => ({
        deliveries: { settle: async (settlements) => (await deliveries.settle(settlements.toReversed())).toReversed() },
    }),
    'forgets the failures after a success': telling((one) => (one.health === 'success' ? { ...one, health: 'none' } : one)),
    'counts the failures of each exporter apart': telling((one, _, [first]) => ({ ...one, exporterId: first?.exporterId ?? '' })),
    'counts no failure that says nothing about health': telling((one) => (one.health === 'none' ? { ...one, health: 'failure' } : one)),
    'stops an exporter for a reason': telling((one) => ({ ...one, stopReason: null })),
    'keeps the reason of an exporter that is stopped already': (exporters, deliveries) => ({
        deliveries: {
            settle: async (settlements) => {
                for (const { exporterId, stopReason, finishedAt } of settlements) {
                    await exporters.update(exporterId, { stopReason }, finishedAt);
                }
                return await deliveries.settle(settlements);
            },
        },
    }),
    'settles and removes at once without getting stuck': (_, deliveries) => ({
        deliveries: {
            settle: async (settlements) => {
                if (settlements.length > 7) {
                    throw new Error('deadlock detected');
                }
                return await deliveries.settle(settlements);
            },
        },
    }),
};

proveWebhookLaws(t, settlementLaws, MUTANTS);

function telling(change: (one: Settlement, index: number, all: readonly Settlement[]) => Settlement): Mutant {
    return (_, deliveries) => ({
        deliveries: { settle: (settlements) => deliveries.settle(settlements.map(change)) },
    });
}

/** Takes everybody for the holder of the latest claim. */
function withoutFence(_: unknown, deliveries: DeliveryStore): { readonly deliveries: Partial<DeliveryStore> } {
    const tokens = new Map<string, string>();
    return {
        deliveries: {
            claim: async (requests) => {
                for (const { deliveryId, token } of requests) {
                    tokens.set(deliveryId, token);
                }
                return await deliveries.claim(requests);
            },
            settle: (settlements) =>
                deliveries.settle(settlements.map((one) => ({ ...one, token: tokens.get(one.deliveryId) ?? one.token }))),
        },
    };
}

function alwaysHeld(_: unknown, deliveries: DeliveryStore): { readonly deliveries: Partial<DeliveryStore> } {
    return {
        deliveries: { settle: async (settlements) => (await deliveries.settle(settlements)).map(() => true) },
    };
}
