export { type EmbeddedDatabaseOptions, openEmbeddedDatabase, openMemoryDatabase } from './embedded-database.ts';
export type { EmbeddedClient, EmbeddedDatabase, EmbeddedNotification } from './embedded-pool.ts';
export type { Ticker } from './maintenance.ts';
