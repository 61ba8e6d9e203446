import pg from 'pg';
import t from 'tap';
import { present } from '../../../../adapters/contract/assertions.ts';
import { memoryInventory } from '../../../../adapters/memory/inventory/inventory.ts';
import { migrate, postgresInventory } from '../../../../adapters/postgres/index.ts';
import type { CollectionSource } from '../../../../adapters/postgres/inventory/collection.ts';
import { rangesOf } from '../../../../adapters/postgres/inventory/search-ranges.ts';
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

t.test(
    'a count asks for four times as many rows at once while they take little, and for no more than fits while they take long',
    async (t) => {
        const idsOf = async (millisecondsOfRow: number): Promise<readonly number[]> => {
            const ids: number[] = [];
            const ranges = present(rangesOf({} as CollectionSource, [1], {}));
            await ranges.count(async ({ after, until }) => {
                const rows = until.id - (after?.id ?? 0);
                ids.push(rows);
                return { count: rows, took: rows * millisecondsOfRow, next: until.id < 40_000 ? until.id + 1 : null };
            });
            return ids;
        };
        t.same(await idsOf(0.000_1), [1_000, 4_000, 16_000, 64_000]);
        t.same((await idsOf(0.02)).slice(0, 3), [1_000, 2_000, 2_000]);
        t.same((await idsOf(0.08)).slice(0, 3), [1_000, 500, 500]);
    },
);
