import t from 'tap';
import { memoryApiKeys } from '../../adapters/memory/index.ts';
import { openMemoryDatabase } from '../../adapters/pglite/index.ts';
import { migrate, postgresApiKeys } from '../../adapters/postgres/index.ts';
import { apiKeys, newApiKey } from '../../lib/keys/api-keys.ts';
import type { ApiKeyStore } from '../../lib/keys/store.ts';

/*
 * A flood of keys that are well-formed and wrong: each was a query of its own, and a good key stood in line behind all of them.
 */

const FLOOD = 5_000;

function counted(store: ApiKeyStore): { readonly store: ApiKeyStore; readonly asked: { queries: number } } {
    const asked = { queries: 0 };
    const counts =
        <Given extends unknown[], Found>(find: (...given: Given) => Found) =>
        (...given: Given): Found => {
            asked.queries += 1;
            return find(...given);
        };
    const together = store.findByDigests?.bind(store);
    return {
        asked,
        store: {
            ...store,
            findByDigest: counts((digest: string) => store.findByDigest(digest)),
            ...(together !== undefined && { findByDigests: counts(together) }),
        },
    };
}

t.test('a flood of wrong keys shares its queries, and a good key among them is found', async (t) => {
    const pool = await openMemoryDatabase();
    t.teardown(() => pool.end());
    await migrate(pool);
    const { store, asked } = counted(postgresApiKeys({ pool }));
    const keys = apiKeys({ store, revealable: false });
    const { key, id } = await keys.create('good');
    const wrong = Array.from({ length: FLOOD }, () => newApiKey());
    const [good, ...others] = await Promise.all([key, ...wrong, key].map((text) => keys.verify(text)));
    t.match(good, { id });
    t.match(others.pop(), { id });
    t.strictSame(new Set(others), new Set([null]));
    t.ok(asked.queries <= 12, `${asked.queries} queries for ${FLOOD + 2} keys`);
});

t.test('a key is good from the moment it is made, and no longer than until it is revoked, whatever was asked before', async (t) => {
    const { store } = counted(memoryApiKeys());
    const random = (size: number): Uint8Array => new Uint8Array(size).fill(7);
    const keys = apiKeys({ store, revealable: false, random });
    const text = newApiKey(random);
    t.equal(await keys.verify(text), null);
    const { id } = await keys.create('made just now');
    t.match(await keys.verify(text), { id });
    await keys.revoke(id);
    t.equal(await keys.verify(text), null);
});
