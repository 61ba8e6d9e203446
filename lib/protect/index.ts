export { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
export { type ConnectionLimits, type Protection, protect } from './connections.ts';
export { handshakeOptions } from './handshakes.ts';
