import t from 'tap';
import { apiKeyGroups } from '../../../adapters/contract/api-keys-laws.ts';
import { apiKeyStoreContract } from '../../../adapters/contract/index.ts';
import { memoryApiKeys } from '../../../adapters/memory/index.ts';
import type { ApiKeyStore, StoredApiKey } from '../../../lib/keys/store.ts';
import { lawOf, lawsOf, mapValues, proveLaws } from './laws.ts';
import { tapTest } from './tap-test.ts';

type Break = (store: ApiKeyStore) => Partial<ApiKeyStore>;

/** A store in memory whose time can be set. */
function settable(): { readonly store: ApiKeyStore; readonly setTime: (time: Date) => void } {
    let now: Date | undefined;
    return {
        store: memoryApiKeys({ clock: () => now ?? new Date() }),
        setTime(time) {
            now = time;
        },
    };
}

/** One way to break each law; a law that its mutant passes is no law. */
const mutants: Record<string, Break> = {
    'finds a key by its digest and by its id, with every field as it was': (store) => ({
        insert: (key) => store.insert({ ...key, createdAt: new Date(Math.floor(key.createdAt.getTime() / 1000) * 1000) }),
    }),
    'keeps the scopes of each key, none included': (store) => ({
        insert: (key) => store.insert({ ...key, scopes: key.scopes?.length === 0 ? ['inventory:read'] : (key.scopes ?? []) }),
    }),
    'keeps the workspaces of each key': (store) => ({
        insert: (key) => store.insert({ ...key, workspaces: key.workspaces?.length === 0 ? null : (key.workspaces ?? null) }),
    }),
    'tells by its own time whether a key has ended': (store) => {
        const said = new Map<string, boolean | undefined>();
        return {
            insert: (key) => {
                said.set(key.id, key.expired);
                return store.insert(key);
            },
            async get(id) {
                const key = await store.get(id);
                return key === null ? null : { ...key, expired: said.get(id) ?? false };
            },
        };
    },
    'tells its own time, whatever the clock of the process says': () => ({ now: async () => new Date() }),
    'ends keys by the time that it tells': (store) => ({
        async get(id) {
            const key = await store.get(id);
            return key === null ? null : { ...key, expired: (key.expiresAt ?? Number.POSITIVE_INFINITY) <= new Date() };
        },
    }),
    'knows no key that was not inserted': (store) => ({
        findByDigest: async () => (await store.list())[0] ?? null,
    }),
    'finds keys together as it does one by one, in the order asked for': (store) => ({
        findByDigests: async (digests) => (await store.list()).filter(({ digest }) => digests.includes(digest)),
    }),
    'takes an id that is no UUID for unknown, not for an error': (store) => ({
        async get(id) {
            if (!/^[0-9a-f-]{36}$/.test(id)) {
                throw Object.assign(new Error('invalid input syntax for type uuid'), { code: '22P02' });
            }
            return store.get(id);
        },
    }),
    'refuses a digest that is taken': (store) => ({
        insert: (key) => store.insert(key).catch(() => {}),
    }),
    'refuses an id that is taken': (store) => ({
        insert: (key) => store.insert(key).catch(() => {}),
    }),
    'lets one of two inserts of the same digest win': () => {
        const keys: StoredApiKey[] = [];
        return {
            async insert(key) {
                keys.push(key);
            },
            list: async () => keys,
        };
    },
    'lists the oldest key first, revoked ones included': (store) => ({
        list: async () => (await store.list()).filter(({ revokedAt }) => revokedAt === null),
    }),
    'shows a sealed key of each sealing key, in its samples if it gives any': (store) => ({
        sealedSamples: async () => (await store.list()).slice(0, 1),
    }),
    'shows page by page what other keys have sealed': (store) => ({
        sealedByOthers: async (current, _, limit) => (await store.sealedByOthers?.(current, null, limit)) ?? [],
    }),
    'replaces what is sealed of some keys, and nothing else': (store) => ({
        reseal: async (keys) => store.reseal?.(keys.slice(0, 1)),
    }),
    'revokes a key once and keeps the first time': (store) => ({
        async revoke(id, at) {
            await store.revoke(id, at);
            return true;
        },
    }),
    'lets one of two revocations win': (store) => ({
        async revoke(id, at) {
            const key = await store.get(id);
            await store.revoke(id, at);
            return key !== null && key.revokedAt === null;
        },
    }),
    'revokes no other key': (store) => ({
        async revoke(_id, at) {
            await Promise.all((await store.list()).map(({ id }) => store.revoke(id, at)));
            return true;
        },
    }),
    'finds a revoked key, with the time of its revocation': (store) => ({
        async findByDigest(digest) {
            const key = await store.findByDigest(digest);
            return key?.revokedAt == null ? key : null;
        },
    }),
    'notes the latest use, whatever the order in which uses arrive': (store) => {
        const touched = new Map<string, Date>();
        return {
            async touch(id, at) {
                touched.set(id, at);
            },
            async get(id) {
                const key = await store.get(id);
                return key === null ? null : { ...key, lastUsedAt: touched.get(id) ?? null };
            },
        };
    },
};

proveLaws(
    t,
    apiKeyStoreContract,
    apiKeyGroups.flatMap(({ laws }) => Object.keys(laws)),
    mapValues(mutants, (mutate) => () => {
        const { store, setTime } = settable();
        return { store: { ...store, ...mutate(store) }, setTime };
    }),
);

function without(...abilities: readonly (keyof ApiKeyStore)[]): () => { readonly store: ApiKeyStore } {
    const { store, setTime } = settable();
    const left = Object.entries(store).filter(([name]) => !abilities.some((ability) => ability === name));
    return () => ({ store: { ...(Object.fromEntries(left) as unknown as ApiKeyStore) }, setTime });
}

const OPTIONAL = ['now', 'findByDigests', 'keepsScopes', 'keepsLimits', 'sealedByOthers', 'reseal'] as const;

t.test('registers no law for what a store does not have', async (t) => {
    const names = [...lawsOf(apiKeyStoreContract, without(...OPTIONAL)).keys()];
    t.same(
        names,
        apiKeyGroups.filter(({ needs }) => needs === undefined).flatMap(({ laws }) => Object.keys(laws)),
    );
    apiKeyStoreContract(tapTest(t), () => {
        const {
            now: _,
            findByDigests: __,
            keepsScopes: ___,
            keepsLimits: ____,
            sealedByOthers: _____,
            reseal: ______,
            ...store
        } = memoryApiKeys();
        return { store };
    });
});

t.test('fails a store that shows what others have sealed, and cannot seal again, or the other way round', async (t) => {
    for (const missing of ['sealedByOthers', 'reseal'] as const) {
        const law = lawOf(apiKeyStoreContract, without(missing), 'shows page by page what other keys have sealed');
        await t.rejects(law(), /must supply a store that has both sealedByOthers\(\) and reseal\(\)/);
    }
});

t.test('asks for a way to set the time of a store that tells it', async (t) => {
    const law = lawOf(
        apiKeyStoreContract,
        () => ({ store: memoryApiKeys() }),
        'tells its own time, whatever the clock of the process says',
    );
    await t.rejects(law(), /must supply setTime\(\)/);
});
