import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { memoryApiKeys } from '../../../adapters/memory/api-keys.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import { type ApiKeysOptions, apiKeys, type KeyEvent } from '../../../lib/keys/api-keys.ts';
import { apiKeyDigest, apiKeyStart, looksLikeApiKey, looksLikeForeignKey, newApiKey } from '../../../lib/keys/key-form.ts';
import { keyRing } from '../../../lib/keys/key-ring.ts';
import { UNSCOPED } from '../../../lib/keys/scopes.ts';
import type { StoredApiKey } from '../../../lib/keys/store.ts';

const START = Date.parse('2026-11-21T09:30:00Z');

function setUp(options: Partial<ApiKeysOptions> = {}) {
    const store = options.store ?? memoryApiKeys();
    const time = { now: START };
    const ring = keyRing({ current: 'k1', keys: { k1: randomBytes(32) } });
    const keys = apiKeys({ keyRing: ring, clock: () => new Date(time.now), ...options, store });
    return { keys, store, time };
}

t.test('verifies the keys that it made, several at once', async (t) => {
    const { keys } = setUp();
    const made = [await keys.create('one'), await keys.create('two'), await keys.create('one')];
    for (const { key, ...owner } of made) {
        t.strictSame(await keys.verify(key), { ...owner, scopes: ['inventory:read'], workspaces: null });
    }
    t.equal(new Set(made.map(({ id }) => id)).size, 3);
});

t.test('verifies nothing else', async (t) => {
    const { keys } = setUp();
    await keys.create('one');
    for (const key of [newApiKey(), '', 'scw_', 'garbage', 'x'.repeat(100_000)]) {
        t.equal(await keys.verify(key), null);
    }
});

t.test('tells garbage from keys before it asks the store', async (t) => {
    let asked = 0;
    const store = memoryApiKeys();
    const { keys } = setUp({
        store: {
            ...store,
            async findByDigest() {
                asked += 1;
                return null;
            },
        },
    });
    await keys.verify('garbage');
    t.equal(asked, 0);
    await keys.verify(newApiKey());
    t.equal(asked, 1);
});

t.test('lets a key do and see nothing for a store that loses what it keeps of it, and says so once a minute', async (t) => {
    for (const field of ['scopes', 'workspaces', 'expiresAt'] as const) {
        const store = memoryApiKeys();
        const errors: Error[] = [];
        const without = (row: StoredApiKey | null): StoredApiKey | null => {
            const { [field]: _lost, ...rest } = row as StoredApiKey;
            return row === null ? null : rest;
        };
        const { keys, time } = setUp({
            store: {
                ...store,
                findByDigest: async (digest) => without(await store.findByDigest(digest)),
                list: async () => (await store.list()).map((row) => without(row) as StoredApiKey),
            },
            onError: (error) => void errors.push(error),
        });
        const { key } = await keys.create('narrow', { scopes: ['deliveries:read'], workspaces: [7], expiresAt: new Date('2099-01-01') });
        for (let times = 0; times < 3; times += 1) {
            t.match(await keys.verify(key), { scopes: [], workspaces: [] }, field);
        }
        t.match(await keys.list(), [{ scopes: [], workspaces: [] }], field);
        t.match(errors, [
            { code: 'MISCONFIGURED', field, message: `The store of API keys says that it keeps ${field}, and has given a key without` },
        ]);
        t.equal(errors.length, 1);
        time.now += 60_000;
        await keys.verify(key);
        t.equal(errors.length, 2);

        const { keepsScopes: _scopes, keepsLimits: _limits, ...keepingNone } = store;
        const unknowing = setUp({ store: { ...keepingNone, findByDigest: async (digest) => without(await store.findByDigest(digest)) } });
        t.match(await unknowing.keys.verify(key), field === 'scopes' ? { scopes: UNSCOPED } : { scopes: ['deliveries:read'] });
    }
});

t.test('verifies no key for a store that answers with another one', async (t) => {
    const store = memoryApiKeys();
    const { keys } = setUp({ store: { ...store, findByDigest: async () => (await store.list())[0] ?? null } });
    await keys.create('one');

    t.equal(await keys.verify(newApiKey()), null);
});

t.test('keeps a key as digest and sealed text only', async (t) => {
    const { keys, store } = setUp();
    const { key, id } = await keys.create('one');
    const [stored] = await store.list();

    t.match(stored, { id, name: 'one', start: key.slice(0, 8), createdAt: new Date(START), lastUsedAt: null, revokedAt: null });
    t.equal(stored?.digest, createHash('sha256').update(key).digest('hex'));
    t.notMatch(JSON.stringify(stored), key);
    t.notMatch(JSON.stringify(await keys.list()), key);
    t.notOk('sealed' in ((await keys.list())[0] ?? {}), 'lists show nothing sealed');
});

t.test('asks the store for digests, so that no store compares keys', async (t) => {
    const store = memoryApiKeys();
    const asked: unknown[] = [];
    const { keys } = setUp({
        acceptForeignKeys: true,
        store: {
            ...store,
            async findByDigest(digest) {
                asked.push(digest);
                return await store.findByDigest(digest);
            },
        },
    });
    const { key } = await keys.create('one');
    const sent = [key, newApiKey(), 'from elsewhere', 'short'];
    for (const one of sent) {
        await keys.verify(one);
    }

    t.strictSame(
        asked,
        sent.filter(looksLikeForeignKey).map((one) => createHash('sha256').update(one).digest('hex')),
    );
});

t.test('reveals a key, also one that was revoked', async (t) => {
    const { keys } = setUp();
    const made = await keys.create('one');
    t.strictSame(await keys.reveal(made.id), made);
    await keys.revoke(made.id);
    t.strictSame(await keys.reveal(made.id), made);
});

t.test('reveals a key whose id a store found in another spelling', async (t) => {
    const memory = memoryApiKeys();
    const { keys } = setUp({ store: { ...memory, get: (id) => memory.get(id.toLowerCase()) } });
    const made = await keys.create('one');
    t.strictSame(await keys.reveal(made.id.toUpperCase()), made);
});

t.test('notes the last use of a key unless that is switched off', async (t) => {
    const notes = async (options: object) => {
        const told: string[] = [];
        const { keys, store } = setUp({ ...options, onEvent: ({ type }: { type: string }) => void told.push(type) });
        const { id, key } = await keys.create('one');
        t.match(await keys.verify(key), { id });
        return { told, lastUsedAt: (await store.get(id))?.lastUsedAt ?? null };
    };
    t.strictSame(await notes({}), { told: ['key.created', 'key.used'], lastUsedAt: new Date(START) });
    t.strictSame(await notes({ lastUse: false }), { told: ['key.created'], lastUsedAt: null });
});

t.test('makes, verifies and revokes keys, whatever the application throws when it is told', async (t) => {
    const told = (type: string) => new Error(`told of ${type}`);
    const ways = {
        throwing: ({ type }: KeyEvent): void => {
            throw told(type);
        },
        rejecting: async ({ type }: KeyEvent): Promise<void> => {
            throw told(type);
        },
    };
    for (const [way, onEvent] of Object.entries(ways)) {
        const errors: Error[] = [];
        const { keys, store } = setUp({ onEvent, onError: (error) => void errors.push(error) });
        const { id, key } = await keys.create('one');
        t.match(await keys.verify(key), { id }, way);
        await turn();
        t.ok((await store.get(id))?.lastUsedAt, `${way}: the use is noted`);
        await keys.revoke(id);
        await turn();
        t.same(errors, ['key.created', 'key.used', 'key.revoked'].map(told), way);

        const silent = setUp({ onEvent });
        const made = await silent.keys.create('one');
        t.match(await silent.keys.verify(made.key), { id: made.id }, `${way}, and nobody hears of it`);
        await turn();
    }
});

t.test('opens a sealed key only for its own row', async (t) => {
    const { keys, store } = setUp();
    const { id } = await keys.create('one');
    const stored = await store.get(id);
    const other = randomUUID();
    if (stored !== null) {
        await store.insert({ ...stored, id: other, digest: '0'.repeat(64) });
    }

    await t.rejects(keys.reveal(other), { code: 'UNSEALABLE' });
});

t.test('shows a key once where revealing is off', async (t) => {
    const { keys, store } = setUp({ revealable: false, keyRing: undefined });
    const { id, key } = await keys.create('one');

    t.equal((await store.get(id))?.sealed, null);
    t.match(await keys.verify(key), { id });
    await t.rejects(keys.reveal(id), { code: 'CONFLICT' });
});

t.test('refuses to seal without a key ring', async (t) => {
    t.throws(() => apiKeys({ store: memoryApiKeys() }), { code: 'MISCONFIGURED', field: 'keyRing' });
});

t.test('refuses a key from the moment of its revocation, for good', async (t) => {
    const { keys } = setUp();
    const { id, key } = await keys.create('one');
    await keys.revoke(id);

    t.equal(await keys.verify(key), null);
    await t.rejects(keys.revoke(id), { code: 'CONFLICT' });
    t.match(await keys.list(), [{ id, revokedAt: new Date(START) }]);
});

t.test('says that a key is unknown', async (t) => {
    const { keys } = setUp();

    await t.rejects(keys.reveal(randomUUID()), { code: 'NOT_FOUND' });
    await t.rejects(keys.revoke('no-uuid'), { code: 'NOT_FOUND' });
});

t.test('accepts names of 1 to 255 characters, trimmed', async (t) => {
    const { keys } = setUp();

    t.equal((await keys.create('  ключ 🔑👩‍🚀 ')).name, 'ключ 🔑👩‍🚀');
    t.equal((await keys.create('x'.repeat(255))).name.length, 255);
    for (const name of ['', '   ', 'x'.repeat(256), 'a\u0000b', 'a\nb', '\u009b', '\ud800', undefined, null, 7]) {
        await t.rejects(keys.create(name as string), { code: 'INVALID_INPUT', field: 'name' }, JSON.stringify(name));
    }
});

t.test('notes the use of a key at most once a minute', async (t) => {
    const { keys, time } = setUp();
    const { key } = await keys.create('one');
    const lastUsed = async () => (await keys.list())[0]?.lastUsedAt?.getTime();

    await keys.verify(key);
    t.equal(await lastUsed(), START);
    time.now += 59_999;
    await keys.verify(key);
    t.equal(await lastUsed(), START);
    time.now += 1;
    await keys.verify(key);
    t.equal(await lastUsed(), START + 60_000);
});

t.test('notes one use for many requests at once, whatever the store still shows', async (t) => {
    let touched = 0;
    const { keys } = setUp({
        store: {
            ...memoryApiKeys(),
            async touch() {
                touched += 1;
            },
        },
    });
    const { key } = await keys.create('one');
    await Promise.all([keys.verify(key), keys.verify(key), keys.verify(key)]);
    await keys.verify(key);

    t.equal(touched, 1);
});

t.test('neither waits for the note of a use nor fails with it', async (t) => {
    const failures = [
        () => new Promise<void>(() => {}),
        () => Promise.reject(new Error('down')),
        () => {
            throw new Error('down');
        },
    ];
    for (const touch of failures) {
        const { keys } = setUp({ store: { ...memoryApiKeys(), touch } });
        const { key, ...owner } = await keys.create('one');
        t.strictSame(await keys.verify(key), { ...owner, scopes: ['inventory:read'], workspaces: null });
    }
});

t.test('tells once a minute that uses cannot be noted, however many keys are used', async (t) => {
    const errors: Error[] = [];
    const denied = new ScanwireError('MISCONFIGURED', 'The role of the pool lacks a right');
    const { keys, time } = setUp({
        store: { ...memoryApiKeys(), touch: () => Promise.reject(denied) },
        onError: (error) => errors.push(error),
    });
    const [one, two] = [await keys.create('one'), await keys.create('two')];
    for (const { key } of [one, two, one]) {
        t.ok(await keys.verify(key));
        await turn();
    }
    const message = 'Cannot note when API keys were used last: The role of the pool lacks a right';
    t.match(errors, [{ code: 'MISCONFIGURED', message, cause: denied }]);

    time.now += 59_999;
    await keys.verify(two.key);
    await turn();
    t.equal(errors.length, 1);
    time.now += 1;
    await keys.verify(one.key);
    await keys.verify(two.key);
    await turn();
    t.equal(errors.length, 2);
});

t.test('has the process warn of it where nobody else is told, and survives who throws at it', async (t) => {
    const warnings: string[] = [];
    const listener = ({ message }: Error): void => void warnings.push(message);
    process.on('warning', listener);
    t.teardown(() => process.off('warning', listener));
    const touch = () => {
        throw new Error('down');
    };
    const thrower = () => {
        throw new Error('and the log is full');
    };
    for (const told of [{}, { onError: thrower }]) {
        const { keys } = setUp({ store: { ...memoryApiKeys(), touch }, ...told });
        const { key } = await keys.create('one');
        t.ok(await keys.verify(key));
        await turn();
    }
    const heard = 'What is told of API keys was not heard: and the log is full';
    t.strictSame(warnings, ['Cannot note when API keys were used last: down', heard]);
});

t.test('rejects when the store fails', async (t) => {
    const { keys } = setUp({ store: { ...memoryApiKeys(), findByDigest: () => Promise.reject(new Error('down')) } });

    await t.rejects(keys.verify(newApiKey()), { message: 'down' });
});

t.test('finds foreign keys only where they are accepted', async (t) => {
    const store = memoryApiKeys();
    const owner = { id: randomUUID(), name: 'old system' };
    const digest = createHash('sha256').update('0123-foreign').digest('hex');
    const may = { scopes: UNSCOPED, workspaces: null, expiresAt: null };
    const times = { createdAt: new Date(START), lastUsedAt: null, revokedAt: null };
    await store.insert({ ...owner, digest, start: '0123', sealed: null, ...times, ...may });

    t.strictSame(await setUp({ store, acceptForeignKeys: true }).keys.verify('0123-foreign'), {
        ...owner,
        scopes: ['inventory:read', 'records:read', 'records:write'],
        workspaces: null,
    });
    t.equal(await setUp({ store }).keys.verify('0123-foreign'), null);
    t.equal(await setUp({ store, acceptForeignKeys: true }).keys.verify('0123-foreign, 0123-foreign'), null);
});

t.test('misses a sealing key that the store needs', async (t) => {
    const { keys, store } = setUp();
    await keys.create('one');
    await keys.checkSealing();

    for (const id of ['k1', 'k2']) {
        const other = apiKeys({ store, keyRing: keyRing({ current: id, keys: { [id]: randomBytes(32) } }) });
        await t.rejects(other.checkSealing(), { code: 'MISCONFIGURED', field: 'keyRing', message: /k1/ }, id);
    }

    await apiKeys({ store, revealable: false }).checkSealing();
});

t.test('checks the sealing by samples where the store can give them', async (t) => {
    const { keys, store } = setUp();
    await keys.create('one');
    const sampled = setUp({
        store: { ...store, list: () => Promise.reject(new Error('too many')), sealedSamples: async () => (await store.list()).slice(0, 1) },
    });
    await t.rejects(sampled.keys.checkSealing(), { code: 'MISCONFIGURED', message: /k1/ }, 'its ring has other bytes');
});

t.test('refuses options that cannot work', async (t) => {
    const ring = keyRing({ current: 'k1', keys: { k1: randomBytes(32) } });
    const wrong = { store: {}, keyRing: 'SECRET', revealable: 'SECRET', acceptForeignKeys: 7, clock: 7, newId: 7, random: 7, unknown: 7 };
    for (const [field, value] of Object.entries(wrong)) {
        const options = { store: memoryApiKeys(), keyRing: ring, [field]: value };
        t.throws(() => apiKeys(options as ApiKeysOptions), { code: 'MISCONFIGURED', field, message: /^(?!.*SECRET)/ }, field);
    }
});

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

t.test('makes keys of one fixed form', async (t) => {
    for (const bytes of [Buffer.alloc(32), Buffer.alloc(32, 255), randomBytes(32)]) {
        const key = newApiKey(() => bytes);
        t.match(key, /^scw_[0-9A-Za-z]{49}$/);
        t.ok(looksLikeApiKey(key));
    }
});

t.test('keeps all 256 random bits', async (t) => {
    const bytes = randomBytes(32);
    let value = 0n;
    for (const character of newApiKey(() => bytes).slice(4, 47)) {
        value = value * 62n + BigInt(ALPHABET.indexOf(character));
    }

    t.equal(value.toString(16).padStart(64, '0'), bytes.toString('hex'));
});

t.test('makes another key each time', async (t) => {
    t.not(newApiKey(), newApiKey());
});

t.test('tells a key with a wrong character from a right one', async (t) => {
    const key = newApiKey();
    for (let index = 0; index < key.length; index += 1) {
        const character = key[index] === 'x' ? 'y' : 'x';
        t.notOk(looksLikeApiKey(key.slice(0, index) + character + key.slice(index + 1)), `character ${index}`);
    }
    for (const wrong of ['', key.slice(1), `${key}0`, `${key}\n`, ` ${key}`, `${key}, ${key}`, key.toUpperCase()]) {
        t.notOk(looksLikeApiKey(wrong));
    }
});

t.test('takes visible ASCII for a foreign key and nothing else', async (t) => {
    for (const key of ['a', 'Zm9v+/=', '~'.repeat(512)]) {
        t.ok(looksLikeForeignKey(key), key);
    }
    for (const key of ['', 'a b', 'a, b', 'a\n', 'ä', '\u0000', '~'.repeat(513)]) {
        t.notOk(looksLikeForeignKey(key), JSON.stringify(key));
    }
});

t.test('digests and abbreviates a key', async (t) => {
    t.equal(apiKeyDigest('abc'), createHash('sha256').update('abc').digest('hex'));
    t.equal(apiKeyStart('scw_abcdefgh'), 'scw_abcd');
});
