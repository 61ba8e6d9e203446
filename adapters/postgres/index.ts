export { type PostgresApiKeysOptions, postgresApiKeys } from './api-keys.ts';
export { type PostgresInventoryOptions, postgresInventory } from './inventory.ts';
export { type MigrateOptions, migrate } from './migrate.ts';
export type { Migration } from './migrations/migration.ts';
export type { ClientLike, PoolLike } from './pool.ts';
export { type PostgresRecordsOptions, postgresRecords } from './records.ts';
export { type PostgresStores, type PostgresStoresOptions, postgresStores } from './stores.ts';
export { transaction } from './transaction.ts';
export { postgresWebhooks } from './webhooks.ts';
