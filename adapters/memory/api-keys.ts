import { type ApiKeyStore, apiKeyExists, type StoredApiKey } from '../../lib/keys/store.ts';

/** API keys in memory, for tests and trials: they are gone with the process. */
export function memoryApiKeys(): ApiKeyStore {
    const keys = new Map<string, StoredApiKey>();
    const idsByDigest = new Map<string, string>();

    return {
        keepsScopes: true,

        async insert(key) {
            if (keys.has(key.id) || idsByDigest.has(key.digest)) {
                throw apiKeyExists();
            }

            keys.set(key.id, key);
            idsByDigest.set(key.digest, key.id);
        },

        async findByDigest(digest) {
            return keys.get(idsByDigest.get(digest) ?? '') ?? null;
        },

        async get(id) {
            return keys.get(id) ?? null;
        },

        async list() {
            return [...keys.values()].sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime());
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
