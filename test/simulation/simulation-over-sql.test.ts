import t from 'tap';
import { failuresOf, simulate } from './simulation.ts';
import { openSimulatedDatabase } from './stores.ts';
import { Timeline } from './timeline.ts';

const SEEDS = 2;

t.test('over the SQL of the PostgreSQL stores nothing is lost, burnt, starved or sent in vain either', async (t) => {
    const database = await openSimulatedDatabase();
    t.teardown(() => database.close());
    const { digest } = await simulate(1, database.stores);
    t.strictSame(await failuresOf(database.stores, 1, SEEDS), []);
    t.strictSame(await failuresOf(database.stores, 1, 1, { rated: true }), []);
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
