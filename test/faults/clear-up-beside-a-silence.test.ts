import { mock } from 'node:test';
import t, { type Test } from 'tap';
import { underWay } from '../../adapters/contract/assertions.ts';
import { type PoolLike, postgresInventory } from '../../adapters/postgres/index.ts';
import { each, manyHosts } from '../adapters/postgres/imports/imported.ts';
import { migratedMemory } from '../support/migrated-database.ts';

/** A fail-over: the connection is lost on which the statement comes, and no new one comes any more. */
async function failingOver(t: Test, statement: RegExp) {
    const database = await migratedMemory();
    t.teardown(() => database.end());
    const state = { hangs: false };
    const pool: PoolLike = {
        query: database.query.bind(database),
        async connect() {
            if (state.hangs) {
                return await new Promise<never>(() => undefined);
            }

            const client = await database.connect();
            return {
                query: async <Row>(text: string, values?: unknown[]) => {
                    if (statement.test(text)) {
                        state.hangs = true;
                        throw Object.assign(new Error('terminating connection'), { code: '57P01' });
                    }
                    return await client.query<Row>(text, values);
                },
                on: client.on.bind(client),
                removeListener: client.removeListener.bind(client),
                release: client.release.bind(client),
            };
        },
    };
    return { store: postgresInventory({ pool }), hangs: () => state.hangs };
}

/** How many milliseconds pass until somebody has the error, from when no connection comes any more. */
async function refusedAfter(t: Test, change: () => Promise<unknown>, hangs: () => boolean): Promise<number> {
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    const { result, ended } = underWay(t.rejects(change(), { code: 'UNAVAILABLE', message: /57P01/ }));
    let passed = 0;
    while (!ended()) {
        for (let turn = 0; turn < 100; turn += 1) {
            await new Promise((resolve) => setImmediate(resolve));
        }
        if (hangs() && !ended()) {
            passed += 500;
            mock.timers.tick(500);
        }
    }
    mock.timers.reset();
    await result;
    return passed;
}

for (const [what, statement, change] of [
    ['an import that is read aside', /scanwire\.import_batches/, (store) => store.importHosts('default', each(manyHosts(3)))],
    ['an import that is stored', /insert into scanwire\.hosts/, (store) => store.importHosts('default', each(manyHosts(3)))],
    ['an import that is shown', /staged_shown = true/, (store) => store.importHosts('default', each(manyHosts(3)))],
    ['a removal that marks hosts', /looked as/, (store) => store.removeHosts('default', {})],
] as const satisfies readonly (readonly [string, RegExp, (store: ReturnType<typeof postgresInventory>) => Promise<unknown>])[]) {
    t.test(`${what} and loses its connection says so in time where no new one comes`, async (t) => {
        const { store, hangs } = await failingOver(t, statement);
        const passed = await refusedAfter(t, () => change(store), hangs);
        t.ok(passed <= 4_500, `${passed} ms`);
    });
}
