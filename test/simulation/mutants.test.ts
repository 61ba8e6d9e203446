import t from 'tap';
import type { MakeStores, Mutant } from './deployment.ts';
import { mutants, rareMutants, transactionMutants } from './mutants.ts';
import { rateMutants } from './rate-mutants.ts';
import { type SimulationOptions, simulate } from './simulation.ts';
import { memoryStores, openSimulatedDatabase } from './stores.ts';

/** Each mutant is caught by one of so many seeds. */
const SEEDS = 150;

/**
 * What has caught a mutant before, where that was none of the first seeds, is tried before them. One that does so no more takes time and nothing else:
 * take over then what the comment of the test says.
 */
const CAUGHT_BY: Readonly<Record<string, number>> = {
    'a replay of many that is done before it is': 119,
    'a rate of which retries take all that they can, and first tries what is left': 64,
    'a receiver whose Retry-After is not heard': 36,
    'a key that nothing that has failed holds': 119,
    'an exporter that is never slow': 99,
    'a clock that stands still while the machine is suspended': 64,
    'a rate of which retries get nothing as long as there are first tries': 27,
    'a time-out that counts as delivered': 22,
    'an attempt under a claim that was handed out, and is never named': 17,
    'a breaker that never recovers': 15,
    'a job that was lost and is never missed': 10,
    'a replay of many that replays what was delivered': 9,
    'a replay of many that heeds no rate': 9,
    'what is held and sent without a replay': 8,
    'an outcome that is given up when the store is away': 7,
    'a rate that one exporter may use up': 6,
    'an exporter whose URL is remembered': 4,
    'an exporter whose secret and schedule are remembered': 4,
    'a secret that signs no more as soon as there is another': 4,
    'a change of an exporter that is answered before other processes have heard of it': 4,
    'a claim that fences nobody off: who comes second gets it too': 3,
    'a claim that was handed out and is honoured each time its job comes': 3,
    'a breaker that never opens': 3,
    'a breaker that opens one failure too late': 3,
    'a session of which nothing is heard after its beginning': 3,
};

/** A seed that catches a mutant, with what it found; null when none does. */
async function caught(
    name: string,
    mutant: () => Mutant,
    options: SimulationOptions,
    stores: MakeStores = memoryStores,
): Promise<string | null> {
    for (let next = 0; next <= SEEDS; next += 1) {
        const seed = next === 0 ? (CAUGHT_BY[name] ?? 1) : next;
        const [violation] = (await simulate(seed, stores, { ...options, mutant: mutant() })).violations;
        if (violation !== undefined) {
            return `seed ${seed}: ${violation}`;
        }
    }
    return null;
}

const GROUPS = [
    [mutants, { rare: false, rated: false }],
    [rareMutants, { rare: true }],
    [rateMutants, { rare: false, rated: true }],
] as const;

for (const [group, options] of GROUPS) {
    for (const [name, mutant] of Object.entries(group)) {
        t.test(name, async (t) => {
            const how = await caught(name, mutant, options);
            t.ok(how !== null, 'is caught');
            t.comment(how);
        });
    }
}

for (const [name, mutant] of Object.entries(transactionMutants)) {
    t.test(name, async (t) => {
        const database = await openSimulatedDatabase();
        t.teardown(() => database.close());
        const how = await caught(name, mutant, { rare: false, rated: false }, database.stores);
        t.ok(how !== null, 'is caught');
        t.comment(how);
    });
}
