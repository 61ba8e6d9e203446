import { randomBytes, randomUUID } from 'node:crypto';
import t from 'tap';
import { postgresApiKeys } from '../../../adapters/postgres/index.ts';
import type { StoredApiKey } from '../../../lib/keys/store.ts';
import { databases, startAfresh } from './databases.ts';

const FIRST = new Date('2026-11-21T09:30:00.123Z');
const SECOND = new Date('2026-11-21T09:31:00.000Z');

for (const { name, openMigrated } of databases) {
    t.test(`API keys on ${name}`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        t.beforeEach(() => startAfresh(pool));
        const store = postgresApiKeys({ pool });

        t.test('gives back what was stored', async (t) => {
            const key = someKey();
            await store.insert(key);
            t.same(await store.get(key.id), key);
            t.same(await store.findByDigest(key.digest), key);
            t.equal(await store.get('not-a-uuid'), null);
            t.equal(await store.findByDigest(someKey().digest), null);
        });

        t.test('refuses an id or a digest twice', async (t) => {
            const key = someKey();
            await store.insert(key);
            await t.rejects(store.insert({ ...someKey(), id: key.id }), { code: 'CONFLICT' });
            await t.rejects(store.insert({ ...someKey(), digest: key.digest }), { code: 'CONFLICT' });
        });

        t.test('lists all keys, oldest first', async (t) => {
            const keys = [someKey({ createdAt: SECOND }), someKey({ createdAt: FIRST, sealed: null, revokedAt: SECOND })];
            for (const key of keys) {
                await store.insert(key);
            }

            t.same(await store.list(), keys.toReversed());
        });

        t.test('gives one sealed key of each sealing key', async (t) => {
            await pool.query('delete from scanwire.api_keys');
            t.same(await store.sealedSamples?.(), []);
            const oldest = someKey({ createdAt: FIRST, sealed: 'v1.k.a' });
            const another = someKey({ createdAt: SECOND, sealed: 'v1.k-2.b' });
            for (const key of [someKey({ createdAt: SECOND }), another, oldest, someKey({ sealed: null })]) {
                await store.insert(key);
            }

            const samples = await store.sealedSamples?.();
            t.same(
                samples?.toSorted((a, b) => String(a.sealed).localeCompare(String(b.sealed))),
                [another, oldest].map(({ id, sealed }) => ({ id, sealed })),
            );
        });

        t.test('revokes a key once', async (t) => {
            const key = someKey();
            await store.insert(key);
            t.same(
                [await store.revoke(key.id, FIRST), await store.revoke(key.id, SECOND), await store.revoke('?', FIRST)],
                [true, false, false],
            );
            t.same((await store.get(key.id))?.revokedAt, FIRST);
        });

        t.test('notes the latest use', async (t) => {
            const key = someKey();
            await store.insert(key);
            await Promise.all([store.touch(key.id, SECOND), store.touch(key.id, FIRST), store.touch('?', FIRST)]);
            t.same((await store.get(key.id))?.lastUsedAt, SECOND);
        });
    });
}

function someKey(fields: Partial<StoredApiKey> = {}): StoredApiKey {
    return {
        id: randomUUID(),
        name: 'ci',
        digest: randomBytes(32).toString('hex'),
        start: 'swk_abc',
        sealed: 'v1.k.x',
        createdAt: FIRST,
        lastUsedAt: null,
        scopes: ['inventory:read'],
        revokedAt: null,
        workspaces: null,
        expiresAt: null,
        expired: false,
        ...fields,
    };
}
