export { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
export type { ConnectionLimits } from './connection-limits.ts';
export { type Protection, protect } from './connections.ts';
export { handshakeOptions } from './handshakes.ts';
