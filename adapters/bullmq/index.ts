export { type HostPool, type PostgresQueueOptions, postgresQueue } from './postgres-queue.ts';
export { type RedisQueueOptions, redisQueue } from './redis-queue.ts';
