import type { AuditStore } from '../../lib/audit/audit-trail.ts';
import type { InventoryStore, InventoryWriter } from '../../lib/inventory/store.ts';
import type { ApiKeyStore } from '../../lib/keys/store.ts';
import type { RecordStore } from '../../lib/records/store.ts';
import type { WebhookStores } from '../../lib/webhooks/options.ts';
import { postgresApiKeys } from './api-keys.ts';
import { postgresAudit } from './audit.ts';
import { assertStoreOptions, IMPATIENT, type PoolLike, type PostgresStoresOptions, type PreparingOptions, patiently } from './database.ts';
import { postgresInventory } from './inventory/inventory.ts';
import { postgresRecords } from './records.ts';
import { deliveries } from './webhooks/deliveries.ts';
import { settings } from './webhooks/deployment-settings.ts';
import { exporters } from './webhooks/exporters.ts';
import { notifications } from './webhooks/notifications.ts';

export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export { type PostgresApiKeysOptions, postgresApiKeys } from './api-keys.ts';
export { postgresAudit } from './audit.ts';
export {
    type ClientLike,
    type PoolLike,
    type PostgresStoresOptions,
    type PostgresStoresOptions as PostgresInventoryOptions,
    type PostgresStoresOptions as PostgresRecordsOptions,
    transaction,
} from './database.ts';
export { postgresInventory } from './inventory/inventory.ts';
export { type MigrateOptions, type Migration, type MigrationFile, migrate, migrationFiles } from './migrate.ts';
export { postgresRecords } from './records.ts';

/** The stores over one pool. */
export interface PostgresStores {
    readonly inventory: Required<InventoryStore> & InventoryWriter;
    readonly apiKeys: ApiKeyStore;
    readonly records: RecordStore;
    readonly webhooks: WebhookStores;
    readonly audit: AuditStore;
}

/** What the stores of the webhook exporter are made of. */
export interface PostgresWebhooksOptions extends PreparingOptions {
    /** A `pg.Pool` or the embedded database, its schema brought up to date by `migrate(pool)`. It stays the caller's to end. */
    readonly pool: PoolLike;
    /**
     * Whether commits of the application's transactions are heard, by a notification of PostgreSQL and a connection of our own that listens.
     * False for transactions that end in `prepare transaction`, and behind a pooler that pools transactions. Default true.
     */
    readonly notify?: boolean;
}

/** Whether two pools lead to one database cannot be told without asking it. */
const POSTGRES = {};

/** Every store over one pool. */
export function postgresStores(options: PostgresStoresOptions & PostgresWebhooksOptions): PostgresStores {
    assertStoreOptions(options, 'postgresStores');
    return {
        inventory: postgresInventory(options),
        apiKeys: postgresApiKeys(options),
        records: postgresRecords(options),
        webhooks: postgresWebhooks(options),
        audit: postgresAudit(options),
    };
}

/**
 * Exporters, deliveries and the deployment's settings in PostgreSQL 13 or later, or in the embedded database: one SQL for both. The schema comes from
 * migration `0002-webhooks`. The pool stays the caller's to close.
 */
export function postgresWebhooks(options: PostgresWebhooksOptions): PostgresStores['webhooks'] {
    assertStoreOptions(options, 'postgresWebhooks');
    const { pool, notify = true, prepare = true } = options;
    const db = patiently(pool, {}, { prepare });
    // For what is read somebody may wait at the other end of a request.
    const read = patiently(pool, IMPATIENT, { prepare });
    const { get, list, health, overview, summaries, page } = exporters(read);
    const { get: getDelivery, list: listDeliveries, attempts, content, count, activity, event } = deliveries(read);
    return {
        exporters: Object.assign(exporters(db), { get, list, health, overview, summaries, page, database: POSTGRES }),
        deliveries: Object.assign(deliveries(db, notify ? notifications(pool) : undefined), {
            ...{ get: getDelivery, list: listDeliveries, attempts, content, count, activity, event },
            database: POSTGRES,
            name: pool.embedded === true ? 'The embedded database' : 'PostgreSQL',
        }),
        settings: Object.assign(settings(db), { database: POSTGRES }),
    };
}
