import t from 'tap';
import type { MakeStores, Mutant } from './deployment.ts';
import { mutants, rareMutants, transactionMutants } from './mutants.ts';
import { simulate } from './simulation.ts';
import { memoryStores, openSimulatedDatabase } from './stores.ts';

/** Each mutant is caught by one of so many seeds. */
const SEEDS = 150;

/** The first seed that catches a mutant, with what it found; null when none does. */
async function caught(mutant: () => Mutant, rare: boolean, stores: MakeStores = memoryStores): Promise<string | null> {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
        const [violation] = (await simulate(seed, stores, { mutant: mutant(), rare })).violations;
        if (violation !== undefined) {
            return `seed ${seed}: ${violation}`;
        }
    }
    return null;
}

for (const [rare, group] of [mutants, rareMutants].entries()) {
    for (const [name, mutant] of Object.entries(group)) {
        t.test(name, async (t) => {
            const how = await caught(mutant, rare === 1);
            t.ok(how !== null, 'is caught');
            t.comment(how);
        });
    }
}

for (const [name, mutant] of Object.entries(transactionMutants)) {
    t.test(name, async (t) => {
        const database = await openSimulatedDatabase();
        t.teardown(() => database.close());
        const how = await caught(mutant, false, database.stores);
        t.ok(how !== null, 'is caught');
        t.comment(how);
    });
}
