export { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
export {
    type ApiKeySummary,
    type ApiKeys,
    type ApiKeysOptions,
    apiKeys,
    DENIAL,
    KEY_EVENTS,
    type KeyEvent,
    type RevealedApiKey,
    type VerifiedApiKey,
} from './api-keys.ts';
export {
    API_KEY_PREFIX,
    apiKeyDigest,
    apiKeyStart,
    looksLikeApiKey,
    looksLikeForeignKey,
    newApiKey,
} from './key-form.ts';
export { type KeyRing, type KeyRingOptions, keyRing, sealingKeyId } from './key-ring.ts';
export type { NewKeyOptions } from './limits.ts';
export type { ApiKeyScope } from './scopes.ts';
export type { ApiKeyStore, StoredApiKey } from './store.ts';
