export type { BullmqPool, BullmqPoolClient } from './bullmq-pool.ts';
export { type PostgresQueueOptions, postgresQueue } from './postgres-queue.ts';
export { type RedisQueueOptions, redisQueue } from './redis-queue.ts';
