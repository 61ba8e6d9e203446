import Joi from 'joi';
import type { Clock } from '../../lib/clock.ts';
import { isSealedByFormerKey } from '../../lib/keys/key-ring.ts';
import { type ApiKeyStore, apiKeyExists, type StoredApiKey } from '../../lib/keys/store.ts';
import { checked, clockSchema } from '../../lib/schema-validation.ts';

/** How a store of API keys in memory is made. */
export interface MemoryApiKeysOptions {
    readonly clock?: Clock;
}

const optionsSchema: Joi.ObjectSchema<Required<MemoryApiKeysOptions>> = Joi.object({ clock: clockSchema });

/**
 * API keys in memory, for tests and trials: they are gone with the process.
 *
 * @param options.clock The store's time, by which keys end; that of the process by default.
 */
export function memoryApiKeys(options: MemoryApiKeysOptions = {}): ApiKeyStore {
    const { clock } = checked(optionsSchema, options, { subject: 'memoryApiKeys options', code: 'MISCONFIGURED' });
    const keys = new Map<string, StoredApiKey>();
    const idsByDigest = new Map<string, string>();
    const told = (key: StoredApiKey): StoredApiKey =>
        key.expiresAt === undefined || key.expiresAt === null ? key : { ...key, expired: key.expiresAt <= clock() };
    const find = (id: string): StoredApiKey | null => {
        const key = keys.get(id);
        return key === undefined ? null : told(key);
    };

    return {
        keepsScopes: true,
        keepsLimits: true,
        now: async () => clock(),

        async insert(key) {
            if (keys.has(key.id) || idsByDigest.has(key.digest)) {
                throw apiKeyExists();
            }

            // One that never ends is told as it is kept: each request asks for it.
            keys.set(key.id, key.expiresAt === null ? { ...key, expired: false } : key);
            idsByDigest.set(key.digest, key.id);
        },

        findByDigest(digest) {
            return find(idsByDigest.get(digest) ?? '');
        },

        async get(id) {
            return find(id);
        },

        async list() {
            return [...keys.values()].map(told).sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime());
        },

        async sealedByOthers(current, after, limit) {
            const outdated = [...keys.values()].filter(
                ({ id, sealed }) => (after === null || id > after) && isSealedByFormerKey(sealed ?? '', { current }),
            );
            const byId = outdated.sort((a, b) => (a.id < b.id ? -1 : 1));
            return byId.slice(0, limit).map(({ id, sealed }) => ({ id, sealed }));
        },

        async reseal(changed) {
            for (const { id, sealed } of changed) {
                const key = keys.get(id);
                if (key !== undefined) {
                    keys.set(id, { ...key, sealed });
                }
            }
        },

        async revoke(id, at) {
            const key = keys.get(id);
            if (key === undefined || key.revokedAt !== null) {
                return false;
            }

            keys.set(id, { ...key, revokedAt: at });
            return true;
        },

        async touch(id, at) {
            const key = keys.get(id);
            if (key !== undefined && (key.lastUsedAt === null || key.lastUsedAt < at)) {
                keys.set(id, { ...key, lastUsedAt: at });
            }
        },
    };
}
