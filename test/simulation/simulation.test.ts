import t from 'tap';
import type { MakeStores } from './deployment.ts';
import { simulate } from './simulation.ts';
import { memoryStores, openSimulatedDatabase } from './stores.ts';
import { Timeline } from './timeline.ts';

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
    const { digest } = await simulate(1, database.stores);
    t.strictSame(await failuresOf(database.stores, 1, SEEDS.postgres), []);
    t.equal((await simulate(1, database.stores)).digest, digest, 'the same seed gives the same trace, alone and after others');
});

t.test('each simulation over SQL begins with what a new schema holds', async (t) => {
    const database = await openSimulatedDatabase();
    t.teardown(() => database.close());
    const stores = (): unknown => database.stores(new Timeline());
    await stores();
    const before = await database.contents();
    await simulate(1, database.stores);
    const after = await database.contents();
    t.ok(Object.keys(before).every((name) => name in after) && Object.keys(before).length > 40, 'all of it is looked at');
    t.notMatch(after, before);

    await stores();
    t.strictSame(await database.contents(), before);
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
