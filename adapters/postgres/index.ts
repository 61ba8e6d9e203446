import type { InventoryStore, InventoryWriter } from '../../lib/inventory/store.ts';
import type { ApiKeyStore } from '../../lib/keys/store.ts';
import type { RecordStore } from '../../lib/records/store.ts';
import type { WebhookStores } from '../../lib/webhooks/options.ts';
import { postgresApiKeys } from './api-keys.ts';
import { type PoolLike, type PostgresStoresOptions, patiently } from './database.ts';
import { deliveries } from './deliveries.ts';
import { exporters } from './exporters.ts';
import { postgresInventory } from './inventory.ts';
import { postgresRecords } from './records.ts';
import { settings } from './settings.ts';

export { type PostgresApiKeysOptions, postgresApiKeys } from './api-keys.ts';
export {
    type ClientLike,
    type PoolLike,
    type PostgresStoresOptions,
    type PostgresStoresOptions as PostgresInventoryOptions,
    type PostgresStoresOptions as PostgresRecordsOptions,
    transaction,
} from './database.ts';
export { postgresInventory } from './inventory.ts';
export { type MigrateOptions, type Migration, migrate } from './migrate.ts';
export { postgresRecords } from './records.ts';

/** The stores over one pool. */
export interface PostgresStores {
    readonly inventory: Required<InventoryStore> & InventoryWriter;
    readonly apiKeys: ApiKeyStore;
    readonly records: RecordStore;
    readonly webhooks: WebhookStores;
}

/** Every store over one pool. */
export function postgresStores(options: PostgresStoresOptions): PostgresStores {
    return {
        inventory: postgresInventory(options),
        apiKeys: postgresApiKeys(options),
        records: postgresRecords(options),
        webhooks: postgresWebhooks(options),
    };
}

/**
 * Exporters, deliveries and the deployment's settings in PostgreSQL 13 or later, or in the embedded database: one SQL for both. The schema comes from
 * migration `0002-webhooks`. The pool stays the caller's to close.
 */
export function postgresWebhooks({ pool }: { readonly pool: PoolLike }): PostgresStores['webhooks'] {
    const db = patiently(pool);
    return { exporters: exporters(db), deliveries: deliveries(db), settings: settings(db) };
}
