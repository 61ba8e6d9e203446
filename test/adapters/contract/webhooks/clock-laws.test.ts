import t from 'tap';
import { clockLaws } from '../../../../adapters/contract/webhooks/clock-laws.ts';
import { at } from '../../../../adapters/contract/webhooks/fixture.ts';
import { type Mutants, proveWebhookLaws, runningFast } from './mutants.ts';

const MUTANTS: Mutants = {
    'tries nothing again before its time after a recovery that is to come': runningFast('dispatch', 60_000),
    'counts failures after one that is to come': (_, deliveries) => {
        let failedAt = at(0);
        return {
            deliveries: {
                recordOutcomes: async (outcomes, rules) => {
                    const now = await deliveries.now();
                    const isBelieved = now < failedAt;
                    failedAt = isBelieved ? failedAt : now;
                    return await deliveries.recordOutcomes(
                        isBelieved ? outcomes.map((one) => ({ ...one, health: 'none' })) : outcomes,
                        rules,
                    );
                },
            },
        };
    },
    'tells what a receiver did last, though it did something that is to come': (exporters) => {
        let told: Awaited<ReturnType<typeof exporters.health>> = null;
        return {
            exporters: {
                health: async (id) => {
                    told ??= await exporters.health(id);
                    return told;
                },
            },
        };
    },
};

proveWebhookLaws(t, clockLaws, MUTANTS);
