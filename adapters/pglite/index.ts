export type { EmbeddedClient, EmbeddedDatabase, EmbeddedNotification } from './embedded-pool.ts';
export type { Ticker } from './maintenance.ts';
export { type EmbeddedDatabaseOptions, openEmbeddedDatabase, openMemoryDatabase } from './open.ts';
