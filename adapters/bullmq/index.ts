export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export type { HostPool } from '../postgres/own-pool.ts';
export { type PostgresQueueOptions, postgresQueue } from './postgres-queue.ts';
export { type RedisQueueOptions, redisQueue } from './redis-queue.ts';
