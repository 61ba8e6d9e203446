import pg from 'pg';
import t from 'tap';
import { present } from '../../../../adapters/contract/assertions.ts';
import { memoryInventory } from '../../../../adapters/memory/inventory/inventory.ts';
import { migrate, postgresInventory } from '../../../../adapters/postgres/index.ts';
import type { InventoryStore, InventoryWriter } from '../../../../lib/inventory/store.ts';
import { collect } from '../../../support/collect.ts';
import { migratedMemory } from '../../../support/migrated-database.ts';
import { testDatabase } from '../../../support/test-database.ts';

/** Which of the hosts `ÉCOLE` and `école` a search for the one in lower case finds. */
async function found(store: InventoryStore & InventoryWriter): Promise<readonly string[]> {
    const named = async function* () {
        yield { address: '192.0.2.1', name: 'ÉCOLE' };
        yield { address: '192.0.2.2', name: 'école' };
    };
    const { workspace } = await store.importHosts('default', named());
    const rows = (await collect(present(store.hosts.select)([workspace.id], { where: { search: 'école' } }))).flat();
    return rows.map(({ name }) => name);
}

t.test('upper and lower case of letters beyond A to Z are one as the locale of the database says', async (t) => {
    for (const [locale, names] of [
        ['C', ['école']],
        ['C.UTF-8', ['ÉCOLE', 'école']],
    ] as const) {
        const { url, drop } = await testDatabase(`template0 lc_ctype '${locale}'`);
        t.after(drop);
        const pool = new pg.Pool({ connectionString: url });
        t.after(() => pool.end());
        await migrate(pool);
        t.same(await found(postgresInventory({ pool })), names, locale);
    }
});

t.test('they are one in memory and in the embedded database', async (t) => {
    const database = await migratedMemory();
    t.after(() => database.end());
    for (const store of [memoryInventory(), postgresInventory({ pool: database })]) {
        t.same(await found(store), ['ÉCOLE', 'école']);
    }
});
