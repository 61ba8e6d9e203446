export { API_KEY_PREFIX, apiKeyDigest, apiKeyStart, looksLikeApiKey, looksLikeForeignKey, newApiKey } from './api-key.ts';
export {
    type ApiKeySummary,
    type ApiKeys,
    type ApiKeysOptions,
    apiKeys,
    DENIAL,
    type RevealedApiKey,
    type VerifiedApiKey,
} from './api-keys.ts';
export { type KeyRing, type KeyRingOptions, keyRing, sealingKeyId } from './key-ring.ts';
export type { ApiKeyStore, StoredApiKey } from './store.ts';
