import type { Clock } from '../../lib/clock.ts';
import type { InventoryStore, InventoryWriter } from '../../lib/inventory/store.ts';
import type { ApiKeyStore } from '../../lib/keys/store.ts';
import type { RecordStore } from '../../lib/records/store.ts';
import type { DeliveryStore, ExporterStore } from '../../lib/webhooks/store.ts';
import { postgresApiKeys } from './api-keys.ts';
import { postgresInventory } from './inventory.ts';
import type { PoolLike } from './pool.ts';
import { postgresRecords } from './records.ts';
import { postgresWebhooks } from './webhooks.ts';

export interface PostgresStoresOptions {
    /** A `pg.Pool` or the embedded database, its schema brought up to date by `migrate(pool)`. It stays the caller's to end. */
    readonly pool: PoolLike;
    readonly clock?: Clock;
}

export interface PostgresStores {
    readonly inventory: Required<InventoryStore> & InventoryWriter;
    readonly apiKeys: ApiKeyStore;
    readonly records: RecordStore;
    readonly webhooks: { readonly exporters: ExporterStore; readonly deliveries: DeliveryStore };
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
