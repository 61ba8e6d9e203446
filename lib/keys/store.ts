import type Joi from 'joi';
import { ScanwireError } from '../errors.ts';
import type { Eventual } from '../eventual.ts';
import { objectWith, withAbilities } from '../schema-validation.ts';
import type { ApiKeyScope } from './scopes.ts';

/** One API key at rest. The key itself is only in `sealed`. Times are UTC instants. */
export interface StoredApiKey {
    /** UUID. */
    readonly id: string;
    readonly name: string;
    /** SHA-256 of the key, 64 lower-case hex digits; unique. */
    readonly digest: string;
    /** The first characters of the key, enough to recognise it in a table. */
    readonly start: string;
    /** The key sealed with the key ring, bound to `id`; null where the application has switched revealing off. */
    readonly sealed: string | null;
    readonly createdAt: Date;
    readonly lastUsedAt: Date | null;
    readonly revokedAt: Date | null;
    /** Missing from a store that knows nothing of scopes: the key then has what keys had before there were any. */
    readonly scopes?: readonly ApiKeyScope[];
    /** Ids of the only workspaces that the key sees; null for all. Missing, like the next two, from a store that keeps no limits. */
    readonly workspaces?: readonly number[] | null;
    /** From when on the key is refused; null for never. */
    readonly expiresAt?: Date | null;
    /** Whether `expiresAt` has come by the store's own time: told with every key that is read, not looked at where one is inserted. */
    readonly expired?: boolean;
}

/** Where `token-auth` keeps its keys. Methods reject with ScanwireError `UNAVAILABLE` when the store cannot be reached. */
export interface ApiKeyStore {
    /** Whether `scopes` are kept. Without it, a key that is made with scopes of its own is refused. */
    readonly keepsScopes?: boolean;
    /** Whether `workspaces` and `expiresAt` are kept, and `expired` is told. Without it, a key that is made with either is refused. */
    readonly keepsLimits?: boolean;
    /**
     * The store's time, by which keys end. Optional; with it, `createdAt`, and the times of {@link revoke} and {@link touch}, are this, and without it
     * they are that of the process.
     */
    now?(): Promise<Date>;
    /** @throws ScanwireError `CONFLICT` when id or digest exists already. */
    insert(key: StoredApiKey): Promise<void>;
    /** Revoked keys are found as well; the caller looks at `revokedAt`. Asked with each request: a store that has its keys in memory need not promise them. */
    findByDigest(digest: string): Eventual<StoredApiKey | null>;
    /**
     * What {@link findByDigest} says of each, in the order of the digests. Optional; with it, what is looked up at the same time shares a
     * query, and a flood of wrong keys costs good ones little.
     */
    findByDigests?(digests: readonly string[]): Promise<readonly (StoredApiKey | null)[]>;
    get(id: string): Promise<StoredApiKey | null>;
    /** All keys, revoked ones included, oldest first. */
    list(): Promise<readonly StoredApiKey[]>;
    /**
     * One sealed key of each sealing key (the `<id>` in `v1.<id>.…`): all that the check of the key ring at the start needs, where
     * there may be many keys. Optional; without it that check lists all keys.
     */
    sealedSamples?(): Promise<readonly Pick<StoredApiKey, 'id' | 'sealed'>[]>;
    /**
     * Keys that another sealing key than the named one has sealed, in the form `v1.<id>.…`, by their ids, from behind `after` on. Optional, with
     * {@link reseal}; without both no key is sealed again.
     */
    sealedByOthers?(current: string, after: string | null, limit: number): Promise<readonly Pick<StoredApiKey, 'id' | 'sealed'>[]>;
    /** Replaces what is sealed of these keys, and nothing else of them. */
    reseal?(keys: readonly Pick<StoredApiKey, 'id' | 'sealed'>[]): Promise<void>;
    /** False when there is no such key or it was revoked before; the first time of revocation stays. */
    revoke(id: string, at: Date): Promise<boolean>;
    /** Records that the key was used; an older time never replaces a newer one. */
    touch(id: string, at: Date): Promise<void>;
}

/** What every store rejects with for a key whose id or digest exists already. */
export function apiKeyExists(cause?: unknown): ScanwireError {
    return new ScanwireError('CONFLICT', 'Cannot add an API key whose id or digest exists already', { cause });
}

/** The rules of a store: what it must have, and what it may have. */
export const apiKeyStoreSchema: Joi.ObjectSchema<ApiKeyStore> = withAbilities(
    objectWith<ApiKeyStore>('insert', 'findByDigest', 'get', 'list', 'revoke', 'touch'),
    ...(['now', 'findByDigests', 'sealedSamples', 'sealedByOthers', 'reseal'] as const),
);
