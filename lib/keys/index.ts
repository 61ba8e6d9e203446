export { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
export {
    API_KEY_PREFIX,
    type ApiKeySummary,
    type ApiKeys,
    type ApiKeysOptions,
    apiKeyDigest,
    apiKeyStart,
    apiKeys,
    DENIAL,
    KEY_EVENTS,
    type KeyEvent,
    looksLikeApiKey,
    looksLikeForeignKey,
    newApiKey,
    type RevealedApiKey,
    type VerifiedApiKey,
} from './api-keys.ts';
export { type KeyRing, type KeyRingOptions, keyRing, sealingKeyId } from './key-ring.ts';
export type { NewKeyOptions } from './limits.ts';
export type { ApiKeyScope } from './scopes.ts';
export type { ApiKeyStore, StoredApiKey } from './store.ts';
