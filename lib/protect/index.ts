export { type ConnectionLimits, type Protection, protect } from './connections.ts';
