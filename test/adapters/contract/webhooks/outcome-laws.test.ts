import t from 'tap';
import { outcomeLaws } from '../../../../adapters/contract/webhooks/outcome-laws.ts';
import type { DeliveryStore, RecordedOutcome } from '../../../../lib/webhooks/store.ts';
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
    'answers outcomes in the order given': (_, deliveries) => ({
        deliveries: { recordOutcomes: async (outcomes) => (await deliveries.recordOutcomes(outcomes)).toSorted() },
    }),
    'changes nothing for a token that never held the claim': withoutFence,
    'completes only the attempt when the claim was lost': (exporters, deliveries) => ({
        deliveries: {
            recordOutcomes: async (outcomes) => {
                for (const { exporterId, finishedAt } of outcomes) {
                    await exporters.update(exporterId, { state: 'stopped' }, finishedAt);
                }
                return await deliveries.recordOutcomes(outcomes);
            },
        },
    }),
    'leaves the present claim alone when the outcome of an earlier one comes late': withoutFence,
    'records the outcome of a claim once': alwaysHeld,
    'records the outcome of a claim that has run out and was not taken away': (_, deliveries) => ({
        deliveries: {
            recordOutcomes: async (outcomes) => {
                for (const { finishedAt } of outcomes) {
                    await deliveries.sweep({ now: finishedAt, queuedBefore: new Date(0), limit: 100 });
                }
                return await deliveries.recordOutcomes(outcomes);
            },
        },
    }),
    'lets one of many outcomes at once win': alwaysHeld,
    'counts the failures of an exporter': telling((one, index) => (index === 0 ? one : { ...one, health: 'none' })),
    'counts failures in the order given, since the last success': (_, deliveries) => ({
        deliveries: { recordOutcomes: async (outcomes) => (await deliveries.recordOutcomes(outcomes.toReversed())).toReversed() },
    }),
    'forgets the failures after a success': telling((one) => (one.health === 'success' ? { ...one, health: 'none' } : one)),
    'counts the failures of each exporter apart': telling((one, _, [first]) => ({ ...one, exporterId: first?.exporterId ?? '' })),
    'counts no failure that says nothing about health': telling((one) => (one.health === 'none' ? { ...one, health: 'failure' } : one)),
    'stops an exporter for a reason': telling((one) => ({ ...one, stopReason: null })),
    'keeps the reason of an exporter that is stopped already': (exporters, deliveries) => ({
        deliveries: {
            recordOutcomes: async (outcomes) => {
                for (const { exporterId, stopReason, finishedAt } of outcomes) {
                    await exporters.update(exporterId, { stopReason }, finishedAt);
                }
                return await deliveries.recordOutcomes(outcomes);
            },
        },
    }),
    'records outcomes and removes at once without getting stuck': (_, deliveries) => ({
        deliveries: {
            recordOutcomes: async (outcomes) => {
                if (outcomes.length > 7) {
                    throw new Error('deadlock detected');
                }
                return await deliveries.recordOutcomes(outcomes);
            },
        },
    }),
};

proveWebhookLaws(t, outcomeLaws, MUTANTS);

function telling(change: (one: RecordedOutcome, index: number, all: readonly RecordedOutcome[]) => RecordedOutcome): Mutant {
    return (_, deliveries) => ({
        deliveries: { recordOutcomes: (outcomes) => deliveries.recordOutcomes(outcomes.map(change)) },
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
            recordOutcomes: (outcomes) =>
                deliveries.recordOutcomes(outcomes.map((one) => ({ ...one, token: tokens.get(one.deliveryId) ?? one.token }))),
        },
    };
}

function alwaysHeld(_: unknown, deliveries: DeliveryStore): { readonly deliveries: Partial<DeliveryStore> } {
    return {
        deliveries: { recordOutcomes: async (outcomes) => (await deliveries.recordOutcomes(outcomes)).map(() => true) },
    };
}
