import t from 'tap';
import { outcomeLaws } from '../../../../adapters/contract/webhooks/outcome-laws.ts';
import type { DeliveryStore, RecordedOutcome } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

/** Records the last first. */
const backwards: Mutant = (_, deliveries) => ({
    deliveries: {
        recordOutcomes: async (outcomes, rules) => (await deliveries.recordOutcomes(outcomes.toReversed(), rules)).toReversed(),
    },
});

const MUTANTS: Mutants = {
    'records what was delivered': (_, deliveries) => ({
        deliveries: { attempts: async (id) => (await deliveries.attempts(id)).map((attempt) => ({ ...attempt, late: true })) },
    }),
    'plans the next try': telling((one) => {
        return one.next.state === 'pending' ? { ...one, next: { state: 'pending', delay: 0 } } : one;
    }),
    'records what is exhausted': telling((one) => ({ ...one, next: { state: 'delivered' } })),
    'keeps an outcome exactly': telling((one) => {
        return { ...one, outcome: { ...one.outcome, detail: one.outcome.detail.replaceAll('\u0000', '') } };
    }),
    'answers outcomes in the order given': (_, deliveries) => ({
        deliveries: { recordOutcomes: async (outcomes, rules) => (await deliveries.recordOutcomes(outcomes, rules)).toSorted() },
    }),
    'changes nothing for a token that never held the claim': withoutFence,
    'completes only the attempt when the claim was lost': (exporters, deliveries) => ({
        deliveries: {
            recordOutcomes: async (outcomes, rules) => {
                for (const { exporterId } of outcomes) {
                    await exporters.update(exporterId, { state: 'stopped' });
                }
                return await deliveries.recordOutcomes(outcomes, rules);
            },
        },
    }),
    'leaves the present claim alone when a failure of an earlier one comes late': withoutFence,
    'ends a delivery that was delivered under a claim that was lost, whoever holds it by then': telling((one) => {
        return { ...one, outcome: { ...one.outcome, code: 'server_error' } };
    }),
    'ends by a 2xx that comes late what an outcome behind it ends in vain, in one call': backwards,
    'tries again by a back-off of its own what failed on this side': telling((one) => {
        return one.next.state === 'pending' ? { ...one, next: { state: 'pending', delay: 1000 } } : one;
    }),
    'stops an exporter that has failed for too long': (_, deliveries) => ({
        deliveries: { recordOutcomes: (outcomes, rules) => deliveries.recordOutcomes(outcomes, { ...rules, stopAfter: 10_000_000 }) },
    }),
    'records the outcome of a claim once': alwaysHeld,
    'records the outcome of a claim that has run out and was not taken away': (_, deliveries) => ({
        deliveries: {
            recordOutcomes: async (outcomes, rules) => {
                await deliveries.sweep({ requeueAfter: 1_000_000, limit: 100 });
                return await deliveries.recordOutcomes(outcomes, rules);
            },
        },
    }),
    'lets one of many outcomes at once win': alwaysHeld,
    'counts the failures of an exporter': telling((one) => ({ ...one, health: 'none' })),
    'counts in the order given, since the last success': backwards,
    'forgets the failures after a success': telling((one) => (one.health === 'success' ? { ...one, health: 'none' } : one)),
    'counts the failures of each exporter apart': telling((one, _, [first]) => ({ ...one, exporterId: first?.exporterId ?? '' })),
    'counts no failure that says nothing about health': telling((one) => (one.health === 'none' ? { ...one, health: 'failure' } : one)),
    'stops an exporter for a reason': telling((one) => ({ ...one, stopReason: null })),
    'keeps the reason of an exporter that is stopped already': (exporters, deliveries) => ({
        deliveries: {
            recordOutcomes: async (outcomes, rules) => {
                for (const { exporterId, stopReason } of outcomes) {
                    await exporters.update(exporterId, { stopReason });
                }
                return await deliveries.recordOutcomes(outcomes, rules);
            },
        },
    }),
    'records outcomes and removes at once without getting stuck': (_, deliveries) => ({
        deliveries: { recordOutcomes: notAtOnce(deliveries) },
    }),
    'records late outcomes of the same attempts at once without getting stuck': (_, deliveries) => ({
        deliveries: { recordOutcomes: notAtOnce(deliveries) },
    }),
};

proveWebhookLaws(t, outcomeLaws, MUTANTS);

function telling(change: (one: RecordedOutcome, index: number, all: readonly RecordedOutcome[]) => RecordedOutcome): Mutant {
    return (_, deliveries) => ({
        deliveries: { recordOutcomes: (outcomes, rules) => deliveries.recordOutcomes(outcomes.map(change), rules) },
    });
}

/** Takes everybody for the holder of the latest claim. */
function withoutFence(_: unknown, deliveries: DeliveryStore): { readonly deliveries: Partial<DeliveryStore> } {
    const tokens = new Map<string, string>();
    return {
        deliveries: {
            claim: async (requests, session) => {
                for (const { deliveryId, token } of requests) {
                    tokens.set(deliveryId, token);
                }
                return await deliveries.claim(requests, session);
            },
            recordOutcomes: (outcomes, rules) =>
                deliveries.recordOutcomes(
                    outcomes.map((one) => ({ ...one, token: tokens.get(one.deliveryId) ?? one.token })),
                    rules,
                ),
        },
    };
}

function alwaysHeld(_: unknown, deliveries: DeliveryStore): { readonly deliveries: Partial<DeliveryStore> } {
    return {
        deliveries: { recordOutcomes: async (outcomes, rules) => (await deliveries.recordOutcomes(outcomes, rules)).map(() => true) },
    };
}

/** A store whose transactions get stuck when there are two of them. */
function notAtOnce(deliveries: DeliveryStore): DeliveryStore['recordOutcomes'] {
    let recording = 0;
    return async (outcomes, rules) => {
        recording++;
        try {
            if (recording > 1) {
                throw new Error('deadlock detected');
            }
            return await deliveries.recordOutcomes(outcomes, rules);
        } finally {
            recording--;
        }
    };
}
