import t from 'tap';
import type { MakeStores } from './deployment.ts';
import { simulate } from './simulation.ts';
import { memoryStores, openSimulatedDatabase } from './stores.ts';

const SEEDS = { memory: 70, postgres: 2, twice: 5 } as const;

/** Runs the seeds from the first on, and says what of each of them must not be. */
async function failuresOf(stores: MakeStores, first: number, count: number): Promise<readonly string[]> {
    const failures: string[] = [];
    for (let seed = first; seed < first + count; seed += 1) {
        const { violations, story } = await simulate(seed, stores, { rare: false });
        failures.push(...violations.map((what) => `${what} (npm run simulate -- --seed ${seed}: ${story})`));
    }
    return failures;
}

t.test('over the memory stores nothing is lost, burnt, starved or sent in vain', async (t) => {
    t.strictSame(await failuresOf(memoryStores, 1, SEEDS.memory), []);
});

t.test('over the SQL of the PostgreSQL stores neither', async (t) => {
    const database = await openSimulatedDatabase();
    t.teardown(() => database.close());
    t.strictSame(await failuresOf(database.stores, 1, SEEDS.postgres), []);

    const once = await simulate(1, database.stores);
    t.equal((await simulate(1, database.stores)).digest, once.digest, 'the same seed gives the same trace');
});

t.test('the same seed gives the same trace, another seed another', async (t) => {
    const digests = new Set<string>();
    for (let seed = 1; seed <= SEEDS.twice; seed += 1) {
        const { digest } = await simulate(seed, memoryStores);
        t.equal((await simulate(seed, memoryStores)).digest, digest);
        digests.add(digest);
    }
    t.equal(digests.size, SEEDS.twice);
});

t.test('a message that ends whoever sends it is set aside, and all else goes on', async (t) => {
    t.strictSame((await simulate(50, memoryStores, { rare: true })).violations, []);
});
