import t from 'tap';
import { failuresOf, simulate } from './simulation.ts';
import { memoryStores } from './stores.ts';

const SEEDS = { once: 70, twice: 5, rated: 12 } as const;

t.test('over the memory stores nothing is lost, burnt, starved or sent in vain', async (t) => {
    t.strictSame(await failuresOf(memoryStores, 1, SEEDS.once), []);
});

t.test(
    'no more is handed out in a second than a rate of the deployment allows, and each exporter, and retries, have their part of it',
    async (t) => {
        t.strictSame(await failuresOf(memoryStores, 101, SEEDS.rated, { rated: true }), []);
    },
);

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

t.test('a process may die in the midst of what a timer of it does', async (t) => {
    t.strictSame(await failuresOf(memoryStores, 340, 1), []);
});
