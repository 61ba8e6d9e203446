import t from 'tap';
import { webhookStoresContract } from '../../../adapters/contract/webhooks.ts';
import { memoryWebhooks } from '../../../adapters/memory/webhooks.ts';
import { acceptanceMutants } from './acceptance-mutants.ts';
import { claimMutants } from './claim-mutants.ts';
import { deliveryMutants } from './delivery-mutants.ts';
import { dispatchMutants } from './dispatch-mutants.ts';
import { exporterMutants } from './exporter-mutants.ts';
import { type Mutant, type Mutants, withFault } from './mutant.ts';
import { settlementMutants } from './settlement-mutants.ts';

const MUTANTS: Mutants = {
    ...exporterMutants,
    ...acceptanceMutants,
    ...dispatchMutants,
    ...claimMutants,
    ...settlementMutants,
    ...deliveryMutants,
};

t.test('has a mutant for every law', async (t) => {
    t.same([...lawsFor(() => ({})).keys()].sort(), Object.keys(MUTANTS).sort());
});

for (const [law, mutant] of Object.entries(MUTANTS)) {
    t.test(`catches a store that breaks: ${law}`, async (t) => {
        const run = lawsFor(mutant).get(law);
        await t.rejects(run?.() ?? Promise.resolve());
    });
}

function lawsFor(mutant: Mutant): Map<string, () => Promise<void>> {
    const laws = new Map<string, () => Promise<void>>();
    webhookStoresContract(
        (name, run) => laws.set(name, run),
        async () => withFault({ ...memoryWebhooks(), stop: async () => {} }, mutant),
    );
    return laws;
}
