export { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
export type { SignatureForm } from '../webhooks/setting-values.ts';
export { type ReplayCache, type ReplayCacheOptions, replayCache } from './replay-cache.ts';
export { type MessageHeaders, type Verified, type VerifyOptions, verify } from './verify.ts';
