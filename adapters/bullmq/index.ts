export { type PostgresQueueOptions, postgresQueue } from './postgres-queue.ts';
export type { PoolLike } from './queue-pool.ts';
export { type RedisQueueOptions, redisQueue } from './redis-queue.ts';
