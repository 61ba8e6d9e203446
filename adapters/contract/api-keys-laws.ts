import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { sealingKeyId } from '../../lib/keys/key-ring.ts';
import type { ApiKeyStore, StoredApiKey } from '../../lib/keys/store.ts';
import type { Ability, ContractFixture, LawGroup, Laws } from './register-laws.ts';

/** For a store of API keys. */
export interface ApiKeyStoreFixture extends ContractFixture {
    /** Empty once started. */
    readonly store: ApiKeyStore;
    /** Sets the store's time, which stands still until it is set again. Needed of a store that tells it (`now`). */
    readonly setTime?: (time: Date) => void | Promise<void>;
}

/** One that supplies all that any law needs. */
export type ApiKeyStoreSubject = ApiKeyStoreFixture & Required<Pick<ApiKeyStoreFixture, 'setTime'>>;

const EARLY = new Date('2026-01-02T03:04:05.678Z');
const LATE = new Date('2026-05-06T07:08:09.012Z');
const LONG_AGO = new Date('2001-02-03T04:05:06.789Z');
const FAR_AHEAD = new Date('2999-12-31T23:59:59.999Z');

function key(fields: Partial<StoredApiKey> = {}): StoredApiKey {
    const id = fields.id ?? randomUUID();
    return {
        id,
        name: 'a key',
        digest: createHash('sha256').update(id).digest('hex'),
        start: 'scw_abcd',
        sealed: null,
        createdAt: EARLY,
        lastUsedAt: null,
        revokedAt: null,
        ...fields,
    };
}

/** A key that the store holds. */
async function added(store: ApiKeyStore, fields?: Partial<StoredApiKey>): Promise<StoredApiKey> {
    const stored = key({
        ...(store.keepsScopes === true && { scopes: ['inventory:read'] }),
        ...(store.keepsLimits === true && { workspaces: null, expiresAt: null, expired: false }),
        ...fields,
    });
    await store.insert(stored);
    return stored;
}

/** The key as each way of reading gives it. */
async function foundInEveryWay(store: ApiKeyStore, { id, digest }: StoredApiKey): Promise<readonly (StoredApiKey | null | undefined)[]> {
    const together = (await store.findByDigests?.([digest])) ?? [];
    const listed = (await store.list()).find((stored) => stored.id === id);
    return [await store.findByDigest(digest), ...together, await store.get(id), listed];
}

const conflict = { name: 'ScanwireError', code: 'CONFLICT' };

/** What every `ApiKeyStore` does. */
const everyLaws: Laws<ApiKeyStoreFixture> = {
    async 'finds a key by its digest and by its id, with every field as it was'({ store }) {
        const full = await added(store, { name: 'Ключ 🔑', sealed: 'v1.k.AAAA', createdAt: LATE, lastUsedAt: EARLY, revokedAt: LATE });
        const bare = await added(store);

        assert.deepEqual(await store.findByDigest(full.digest), full);
        assert.deepEqual(await store.get(full.id), full);
        assert.deepEqual(await store.get(bare.id), bare);
    },

    async 'knows no key that was not inserted'({ store }) {
        await added(store);
        const other = key();

        assert.equal(await store.findByDigest(other.digest), null);
        assert.equal(await store.get(other.id), null);
        assert.equal(await store.revoke(other.id, LATE), false);
        await store.touch(other.id, LATE);
        assert.equal((await store.list()).length, 1);
    },

    async 'takes an id that is no UUID for unknown, not for an error'({ store }) {
        for (const id of ['', '1', 'no-uuid', "' or 1=1"]) {
            assert.equal(await store.get(id), null);
            assert.equal(await store.revoke(id, LATE), false);
            await store.touch(id, LATE);
        }
    },

    async 'refuses a digest that is taken'({ store }) {
        const first = await added(store);
        await assert.rejects(store.insert(key({ digest: first.digest })), conflict);

        assert.deepEqual(await store.list(), [first]);
    },

    async 'refuses an id that is taken'({ store }) {
        const first = await added(store);
        await assert.rejects(store.insert(key({ id: first.id, digest: '0'.repeat(64) })), conflict);

        assert.deepEqual(await store.list(), [first]);
        assert.equal(await store.findByDigest('0'.repeat(64)), null);
    },

    async 'lets one of two inserts of the same digest win'({ store }) {
        const digest = key().digest;
        const results = await Promise.allSettled([store.insert(key({ digest })), store.insert(key({ digest }))]);

        assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
        assert.equal((await store.list()).length, 1);
    },

    async 'lists the oldest key first, revoked ones included'({ store }) {
        const late = await added(store, { createdAt: LATE });
        const early = await added(store, { createdAt: EARLY, revokedAt: LATE });

        assert.deepEqual(await store.list(), [early, late]);
    },

    async 'shows a sealed key of each sealing key, in its samples if it gives any'({ store }) {
        for (const sealed of ['v1.k1.AAAA', 'v1.k1.BBBB', 'v1.k-2.CCCC', null]) {
            await added(store, { sealed });
        }

        const samples = await (store.sealedSamples?.() ?? store.list());
        for (const { id, sealed } of samples) {
            assert.equal((await store.get(id))?.sealed, sealed);
        }

        const sealed = samples.flatMap((sample) => sample.sealed ?? []);
        assert.deepEqual(new Set(sealed.map(sealingKeyId)), new Set(['k1', 'k-2']));
    },

    async 'revokes a key once and keeps the first time'({ store }) {
        const { id } = await added(store);

        assert.equal(await store.revoke(id, EARLY), true);
        assert.equal(await store.revoke(id, LATE), false);
        assert.deepEqual((await store.get(id))?.revokedAt, EARLY);
    },

    async 'lets one of two revocations win'({ store }) {
        const { id } = await added(store);
        const results = await Promise.all([store.revoke(id, EARLY), store.revoke(id, EARLY)]);

        assert.deepEqual(results.sort(), [false, true]);
    },

    async 'revokes no other key'({ store }) {
        const kept = await added(store);
        const revoked = await added(store);
        await store.revoke(revoked.id, LATE);

        assert.deepEqual(await store.get(kept.id), kept);
    },

    async 'finds a revoked key, with the time of its revocation'({ store }) {
        const stored = await added(store);
        await store.revoke(stored.id, LATE);

        assert.deepEqual(await store.findByDigest(stored.digest), { ...stored, revokedAt: LATE });
    },

    async 'notes the latest use, whatever the order in which uses arrive'({ store }) {
        const { id } = await added(store);
        await store.touch(id, LATE);
        await store.touch(id, EARLY);

        assert.deepEqual((await store.get(id))?.lastUsedAt, LATE);
    },
};

const togetherLaws: Laws<ApiKeyStoreFixture> = {
    async 'finds keys together as it does one by one, in the order asked for'({ store }) {
        const [first, second] = [await added(store), await added(store, { revokedAt: LATE })];
        const digests = [second.digest, key().digest, first.digest, second.digest];

        assert.deepEqual(await store.findByDigests?.(digests), [second, null, first, second]);
    },
};

const scopeLaws: Laws<ApiKeyStoreFixture> = {
    async 'keeps the scopes of each key, none included'({ store }) {
        for (const scopes of [[], ['admin'], ['records:write', 'records:read']] as const) {
            const stored = await added(store, { scopes });
            await store.touch(stored.id, LATE);
            for (const found of await foundInEveryWay(store, stored)) {
                assert.deepEqual(found?.scopes, scopes);
            }
        }
    },
};

const limitLaws: Laws<ApiKeyStoreFixture> = {
    async 'keeps the workspaces of each key'({ store }) {
        for (const workspaces of [null, [], [7], [2_147_483_647, 1]]) {
            const stored = await added(store, { workspaces });
            await store.touch(stored.id, LATE);
            for (const found of await foundInEveryWay(store, stored)) {
                assert.deepEqual(found?.workspaces, workspaces);
            }
        }
    },

    async 'tells by its own time whether a key has ended'({ store }) {
        for (const [expiresAt, expired] of [
            [null, false],
            [LONG_AGO, true],
            [FAR_AHEAD, false],
        ] as const) {
            // What the caller says of it counts for nothing.
            const stored = await added(store, { expiresAt, expired: !expired });
            for (const found of await foundInEveryWay(store, stored)) {
                assert.deepEqual([found?.expiresAt, found?.expired], [expiresAt, expired]);
            }
        }
    },
};

const clockLaws: Laws<ApiKeyStoreSubject> = {
    async 'tells its own time, whatever the clock of the process says'({ store, setTime }) {
        for (const time of [LONG_AGO, LATE, FAR_AHEAD]) {
            await setTime(time);
            assert.deepEqual(await store.now?.(), time);
        }
    },
};

const endLaws: Laws<ApiKeyStoreSubject> = {
    async 'ends keys by the time that it tells'({ store, setTime }) {
        await setTime(EARLY);
        const stored = await added(store, { expiresAt: LATE });
        for (const [time, expired] of [
            [new Date(LATE.getTime() - 1), false],
            [LATE, true],
        ] as const) {
            await setTime(time);
            for (const found of await foundInEveryWay(store, stored)) {
                assert.equal(found?.expired, expired);
            }
        }
    },
};

const sealingLaws: Laws<ApiKeyStoreFixture> = {
    async 'shows page by page what other keys have sealed'({ store }) {
        const sealed = ['v1.old.AAAA', 'v1.new.AAAA', null, 'v1.old.BBBB', 'v1.older.CCCC'];
        const keys = await Promise.all(sealed.map((text) => added(store, { sealed: text })));
        const outdated = keys.filter((one) => one.sealed?.startsWith('v1.old')).sort((a, b) => (a.id < b.id ? -1 : 1));
        const shown = outdated.map(({ id, sealed }) => ({ id, sealed }));

        const first = await store.sealedByOthers?.('new', null, 2);
        assert.deepEqual(first, shown.slice(0, 2));
        assert.deepEqual(await store.sealedByOthers?.('new', first?.[1]?.id ?? null, 2), shown.slice(2));
    },

    async 'replaces what is sealed of some keys, and nothing else'({ store }) {
        const [one, two, other] = [
            await added(store, { sealed: 'v1.old.AAAA', revokedAt: LATE }),
            await added(store, { sealed: 'v1.old.BBBB', lastUsedAt: EARLY }),
            await added(store, { sealed: 'v1.old.CCCC' }),
        ];
        await store.reseal?.([
            { id: two.id, sealed: 'v1.new.EEEE' },
            { id: one.id, sealed: 'v1.new.DDDD' },
        ]);
        await store.reseal?.([]);

        assert.deepEqual(await store.get(one.id), { ...one, sealed: 'v1.new.DDDD' });
        assert.deepEqual(await store.get(two.id), { ...two, sealed: 'v1.new.EEEE' });
        assert.deepEqual(await store.get(other.id), other);
    },
};

/** Name of something that not every store of API keys can do. */
type ApiKeyAbility = 'together' | 'scopes' | 'limits' | 'clock' | 'seals-again';

/** What the laws of a store of API keys may need. */
export const apiKeyAbilities: Readonly<Record<ApiKeyAbility, Ability<ApiKeyStoreFixture>>> = {
    together: { has: ({ store }) => store.findByDigests !== undefined, shows: () => true, supply: 'nothing' },
    scopes: { has: ({ store }) => store.keepsScopes === true, shows: () => true, supply: 'nothing' },
    limits: { has: ({ store }) => store.keepsLimits === true, shows: () => true, supply: 'nothing' },
    clock: {
        has: ({ store }) => store.now !== undefined,
        shows: ({ setTime }) => setTime !== undefined,
        supply: 'setTime()',
    },
    'seals-again': {
        has: ({ store }) => store.sealedByOthers !== undefined || store.reseal !== undefined,
        // With one of them no key can be sealed again, and the store would find out when a key ring is rotated.
        shows: ({ store }) => store.sealedByOthers !== undefined && store.reseal !== undefined,
        supply: 'a store that has both sealedByOthers() and reseal()',
    },
};

/** The laws of a store of API keys. */
export const apiKeyGroups: readonly LawGroup<ApiKeyStoreSubject, ApiKeyAbility>[] = [
    { laws: everyLaws },
    { needs: ['together'], laws: togetherLaws },
    { needs: ['scopes'], laws: scopeLaws },
    { needs: ['limits'], laws: limitLaws },
    { needs: ['clock'], laws: clockLaws },
    { needs: ['clock', 'limits'], laws: endLaws },
    { needs: ['seals-again'], laws: sealingLaws },
];
