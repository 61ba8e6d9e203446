export type { Ticker } from '../../lib/clock.ts';
export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export type { DumpOptions } from './dumps.ts';
export {
    type EmbeddedDatabaseOptions,
    type EmbeddedFolder,
    openEmbeddedDatabase,
    openMemoryDatabase,
} from './embedded-database.ts';
export type { EmbeddedClient, EmbeddedDatabase, EmbeddedNotification } from './embedded-pool.ts';
