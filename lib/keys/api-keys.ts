import { randomUUID } from 'node:crypto';
import Joi from 'joi';
import { batched } from '../batched.ts';
import { type Clock, systemClock } from '../clock.ts';
import { ScanwireError } from '../errors.ts';
import { type Eventual, whenThere } from '../eventual.ts';
import { checked, objectWith } from '../schema-validation.ts';
import { apiKeyDigest, apiKeyStart, looksLikeApiKey, looksLikeForeignKey, newApiKey } from './key-form.ts';
import { assertOpens, type KeyRing, type Resealed } from './key-ring.ts';
import { reporting, touching, warned } from './key-uses.ts';
import { assertKept, assertOptions, isOver, lostOf, mayOf, type NewKeyOptions, newKeySchema } from './limits.ts';
import { type ApiKeyScope, DEFAULT_SCOPES } from './scopes.ts';
import { resealKeys, sealedKeys, sealingContext } from './sealed-keys.ts';
import { type ApiKeyStore, apiKeyStoreSchema, type StoredApiKey } from './store.ts';

/** What {@link apiKeys} and its plugin (`plugins/token-auth`) have in common. */
export interface ApiKeysSettings {
    /** Where the keys are. */
    readonly store: ApiKeyStore;
    /** Seals the keys at rest; required unless `revealable` is false. */
    readonly keyRing?: KeyRing | undefined;
    /** Whether a key can be shown again later. False keeps only its digest: it is shown once. Default true. */
    readonly revealable?: boolean | undefined;
    /** Whether keys that another system issued, and that the store knows by digest, are accepted too. Default false. */
    readonly acceptForeignKeys?: boolean | undefined;
    /** Whether the store notes when a key was used last, to the minute. Default true. */
    readonly lastUse?: boolean | undefined;
    /** The time now. Default: the store's, and that of this process where the store tells none. */
    readonly clock?: Clock | undefined;
}

/** What {@link apiKeys} is made of. */
export interface ApiKeysOptions extends ApiKeysSettings {
    /** Returns the id of a new key; UUIDs by default. */
    readonly newId?: (() => string) | undefined;
    /** Told when a key was made, used for the first time, or revoked. Nothing waits for it; what it throws goes to `onError`. */
    readonly onEvent?: ((event: KeyEvent) => void | Promise<void>) | undefined;
    /** Receives what `onEvent` throws and, once a minute at most, why uses cannot be noted, and what the store has lost of a key. A warning of the process by default. */
    readonly onError?: ((error: Error) => void) | undefined;
    /** Returns this many random bytes, for a new key. */
    readonly random?: ((size: number) => Uint8Array) | undefined;
}

/** Told by the process that has made, first used or revoked a key. Of a first use in several processes at once each tells. */
export interface KeyEvent {
    readonly type: (typeof KEY_EVENTS)[number];
    readonly id: string;
}

/** Names of the events that are told of keys. */
export const KEY_EVENTS = ['key.created', 'key.used', 'key.revoked'] as const;

/** The rules of {@link ApiKeysSettings}, with their defaults. */
export const apiKeysSettings: Joi.StrictSchemaMap<ApiKeysSettings> = {
    store: apiKeyStoreSchema.required(),
    keyRing: objectWith<KeyRing>('seal', 'open').when('revealable', { is: false, otherwise: Joi.required() }),
    revealable: Joi.boolean().default(true),
    acceptForeignKeys: Joi.boolean().default(false),
    lastUse: Joi.boolean().default(true),
    clock: Joi.function(),
};

const optionsSchema: Joi.ObjectSchema<CheckedOptions> = Joi.object({
    ...apiKeysSettings,
    newId: Joi.function(),
    onEvent: Joi.function(),
    onError: Joi.function(),
    random: Joi.function(),
}).required();

type CheckedOptions = ApiKeysOptions & { readonly revealable: boolean; readonly acceptForeignKeys: boolean; readonly lastUse: boolean };

interface NamedApiKey {
    readonly id: string;
    readonly name: string;
}

/** Who a verified key belongs to, and what it may do. */
export interface VerifiedApiKey extends NamedApiKey {
    readonly scopes: readonly ApiKeyScope[];
    /** Ids of the only workspaces that it sees; null for all. */
    readonly workspaces: readonly number[] | null;
}

/** A key with its full text. */
export interface RevealedApiKey extends NamedApiKey {
    readonly key: string;
}

/** A key as lists show it: nothing in it is secret. Times are UTC instants. */
export interface ApiKeySummary extends NamedApiKey {
    /** The first characters of the key. */
    readonly start: string;
    readonly revealable: boolean;
    readonly scopes: readonly ApiKeyScope[];
    /** Ids of the only workspaces that it sees; null for all. */
    readonly workspaces: readonly number[] | null;
    readonly createdAt: Date;
    /** From when on it is refused; null for never. */
    readonly expiresAt: Date | null;
    /** Whether that has come, by the store's time. */
    readonly expired: boolean;
    /** Exact to a minute. */
    readonly lastUsedAt: Date | null;
    readonly revokedAt: Date | null;
}

/** Every method rejects with ScanwireError `UNAVAILABLE` when the store cannot be reached. */
export interface ApiKeys {
    /**
     * Makes a key.
     *
     * @param name 1 to 255 characters without control characters, trimmed; need not be unique.
     * @throws ScanwireError `INVALID_INPUT` when name or options break their rule, `MISCONFIGURED` when the store does not keep what
     *     is asked for.
     */
    create(name: string, options?: NewKeyOptions): Promise<RevealedApiKey>;

    /** All keys, revoked ones included, oldest first. */
    list(): Promise<readonly ApiKeySummary[]>;

    /**
     * The full text of a key.
     *
     * @throws ScanwireError `NOT_FOUND` without such a key, `CONFLICT` when it was kept as a digest only, `UNSEALABLE` when
     *     the key ring cannot open it.
     */
    reveal(id: string): Promise<RevealedApiKey>;

    /**
     * From now on the key is refused, for good.
     *
     * @throws ScanwireError `NOT_FOUND` without such a key, `CONFLICT` when it was revoked before.
     */
    revoke(id: string): Promise<void>;

    /** Whose key this is; null for anything that is not a valid key. */
    verify(key: string): Promise<VerifiedApiKey | null>;

    /** What {@link verify} tells, at once where the store finds keys at once. */
    check(key: string): Eventual<VerifiedApiKey | null>;

    /**
     * Checks that the key ring opens what is stored; see {@link assertOpens}.
     *
     * @throws ScanwireError `MISCONFIGURED` naming the key that is missing in the ring or has other bytes there.
     */
    checkSealing(): Promise<void>;

    /**
     * Seals a batch of keys with the current key of the ring that another one has sealed, so that this can go once none is left. What
     * cuts it off leaves each key sealed with one of the two; keys are valid all the time.
     *
     * @param after `next` of the batch before; from the beginning when absent.
     * @throws ScanwireError `MISCONFIGURED` when the store cannot replace what is sealed.
     */
    sealAnew(after?: string | null): Promise<Resealed>;
}

/**
 * Makes, shows, revokes and verifies the API keys of a store.
 *
 * @throws ScanwireError `MISCONFIGURED` that names the option, for example when keys shall be revealable and there is no key ring.
 */
export function apiKeys(options: ApiKeysOptions): ApiKeys {
    const settings = checked<CheckedOptions>(optionsSchema, options, { subject: 'apiKeys options', code: 'MISCONFIGURED' });
    const { store, keyRing, revealable, acceptForeignKeys, newId = randomUUID, random } = settings;
    const tell = telling(settings);
    const looksRight = acceptForeignKeys ? looksLikeForeignKey : looksLikeApiKey;
    const time = timeOf(settings);
    const touch = settings.lastUse ? touching(settings, time, reporting(settings), (id) => tell({ type: 'key.used', id })) : () => {};
    const find = finding(store);
    const reportLoss = reporting(settings);

    function check(key: string): Eventual<VerifiedApiKey | null> {
        if (!looksRight(key)) {
            return null;
        }

        const digest = apiKeyDigest(key);
        return whenThere(find(digest), (stored) => {
            // The digest differs only if the store answers with another row. It tells nothing of a key, so its comparison may take any time.
            if (stored === null || stored.digest !== digest || isOver(stored)) {
                return null;
            }

            touch(stored);
            const lost = lostOf(store, stored);
            if (lost !== null) {
                const message = `The store of API keys says that it keeps ${lost}, and has given a key without: that key may do nothing`;
                reportLoss(new ScanwireError('MISCONFIGURED', message, { field: lost }));
            }
            return { id: stored.id, name: stored.name, ...mayOf(store, stored) };
        });
    }

    return {
        async create(name, options = {}) {
            const { name: checkedName, ...limits } = checked(newKeySchema, { ...assertOptions(options), name });
            const createdAt = await time();
            assertKept(store, limits, createdAt);
            const { scopes = DEFAULT_SCOPES, workspaces = null, expiresAt = null } = limits;
            const id = newId();
            const key = newApiKey(random);
            await store.insert({
                id,
                name: checkedName,
                digest: apiKeyDigest(key),
                start: apiKeyStart(key),
                sealed: revealable && keyRing !== undefined ? keyRing.seal(key, sealingContext(id)) : null,
                createdAt,
                lastUsedAt: null,
                revokedAt: null,
                ...(store.keepsScopes === true && { scopes }),
                ...(store.keepsLimits === true && { workspaces, expiresAt }),
            });
            tell({ type: 'key.created', id });
            return { id, name: checkedName, key };
        },

        async list() {
            return (await store.list()).map((stored) => summary(store, stored));
        },

        async reveal(id) {
            const stored = await existing(store, id);
            if (stored.sealed === null || keyRing === undefined) {
                throw new ScanwireError('CONFLICT', 'Cannot show the key again: only its digest is kept');
            }

            // Not the id that was asked for: a UUID is found in upper case too.
            return { id: stored.id, name: stored.name, key: keyRing.open(stored.sealed, sealingContext(stored.id)) };
        },

        async revoke(id) {
            if (!(await store.revoke(id, await time()))) {
                await existing(store, id);
                throw new ScanwireError('CONFLICT', 'Cannot revoke the key: it is revoked already');
            }
            tell({ type: 'key.revoked', id });
        },

        verify: async (key) => await check(key),
        check,

        async checkSealing() {
            if (keyRing !== undefined) {
                assertOpens(keyRing, await sealedKeys(store));
            }
        },

        sealAnew: (after = null) => resealKeys(store, keyRing, after),
    };
}

/** Of two processes whose clocks differ, the one would write what is past or yet to come to the other. */
function timeOf({ store, clock }: ApiKeysOptions): () => Promise<Date> {
    return async () => clock?.() ?? (await store.now?.()) ?? systemClock();
}

/** What the application does with an event is no part of what was done to the key: that stands, and a new key's text is told only once. */
function telling({ onEvent = () => {}, onError = warned }: ApiKeysOptions): (event: KeyEvent) => void {
    async function tell(event: KeyEvent): Promise<void> {
        await onEvent(event);
    }

    return (event) => void tell(event).catch(onError).catch(warned);
}

async function existing(store: ApiKeyStore, id: string): Promise<StoredApiKey> {
    const stored = await store.get(id);
    if (stored === null) {
        throw new ScanwireError('NOT_FOUND', 'Unknown API key', { field: 'id' });
    }

    return stored;
}

/** Keys in one query. */
const MAX_FOUND = 500;

/** Nothing is remembered: a key that was made or revoked a moment ago is one from then on. */
function finding(store: ApiKeyStore): (digest: string) => Eventual<StoredApiKey | null> {
    return store.findByDigests
        ? batched(async (digests) => (await store.findByDigests?.(digests)) ?? [], MAX_FOUND)
        : (digest) => store.findByDigest(digest);
}

function summary(store: ApiKeyStore, stored: StoredApiKey): ApiKeySummary {
    const { id, name, start, sealed, createdAt, expiresAt = null, lastUsedAt, revokedAt } = stored;
    const expired = expiresAt !== null && stored.expired !== false;
    return { id, name, start, revealable: sealed !== null, ...mayOf(store, stored), createdAt, expiresAt, expired, lastUsedAt, revokedAt };
}

/**
 * What every refused request is told. Missing, wrong, malformed, revoked and expired keys and an invalid licence all get this one
 * sentence, so that nobody learns which of them it was.
 */
export const DENIAL = 'Access needs a valid licence on the server and a valid API key in the header named token';
