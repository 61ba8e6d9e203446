export type { PoolLike } from './postgres-queue.ts';
export { type PostgresQueueOptions, postgresQueue } from './postgres-queue.ts';
export { type RedisQueueOptions, redisQueue } from './redis-queue.ts';
