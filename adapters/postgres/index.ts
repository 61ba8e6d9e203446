import type { AuditStore } from '../../lib/audit/audit-trail.ts';
import type { InventoryStore, InventoryWriter } from '../../lib/inventory/store.ts';
import type { ApiKeyStore } from '../../lib/keys/store.ts';
import type { RecordStore } from '../../lib/records/store.ts';
import type { ExporterStore, ReadOptions } from '../../lib/webhooks/exporters/exporter-store.ts';
import type { WebhookStores } from '../../lib/webhooks/options.ts';
import { postgresApiKeys } from './api-keys.ts';
import { postgresAudit } from './audit.ts';
import {
    assertStoreOptions,
    IMPATIENT_OF_SILENCE,
    IMPATIENT_ON_SERVER,
    type PoolLike,
    type PostgresStoresOptions,
    type PreparingOptions,
    patiently,
    together,
} from './database.ts';
import { postgresInventory } from './inventory/inventory.ts';
import { postgresRecords } from './records.ts';
import { attemptLists } from './webhooks/attempt-lists.ts';
import { deliveries } from './webhooks/deliveries.ts';
import { settings } from './webhooks/deployment-settings.ts';
import { exporters } from './webhooks/exporters.ts';
import { notifications } from './webhooks/notifications.ts';
import { replayStore } from './webhooks/replays.ts';

export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export { type PostgresApiKeysOptions, postgresApiKeys } from './api-keys.ts';
export { postgresAudit } from './audit.ts';
export {
    applicationTransaction as transaction,
    type ClientLike,
    type PoolLike,
    type PostgresStoresOptions,
    type PostgresStoresOptions as PostgresRecordsOptions,
} from './database.ts';
export { type PostgresInventoryOptions, postgresInventory } from './inventory/inventory.ts';
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
 * Exporters, deliveries and the deployment's settings in PostgreSQL 14 or later, or in the embedded database: one SQL for both. The schema comes from
 * migration `0002-webhooks`. The pool stays the caller's to close.
 */
export function postgresWebhooks(options: PostgresWebhooksOptions): PostgresStores['webhooks'] {
    assertStoreOptions(options, 'postgresWebhooks');
    const { pool, notify = true, prepare = true } = options;
    const db = patiently(pool, {}, { prepare });
    // Somebody may wait at the other end of a request for what is not read patiently.
    const read = patiently(pool, IMPATIENT_ON_SERVER, { prepare });
    const write = patiently(pool, IMPATIENT_OF_SILENCE, { prepare });
    const engine = { exporters: exporters(db), deliveries: deliveries(db) };
    const requests = { exporters: exporters(read), deliveries: deliveries(read) };
    const changes = { exporters: exporters(write), deliveries: deliveries(write) };
    const { get, health, overview, summaries, page } = requests.exporters;
    const { list: listDeliveries, content, count, activity, event } = requests.deliveries;
    const { insert, update, remove } = changes.exporters;
    const { replay, discard, erase } = changes.deliveries;
    const readers = ({ patient = false }: ReadOptions = {}): typeof engine => (patient ? engine : requests);
    return {
        exporters: Object.assign(exporters(db), {
            ...{ get, health, overview, summaries, page, insert, update, remove },
            list: (options?: Parameters<ExporterStore['list']>[0]) => readers(options).exporters.list(options),
            database: POSTGRES,
        }),
        deliveries: Object.assign(deliveries(db, notify ? notifications(pool) : undefined), {
            ...{ list: listDeliveries, content, count, activity, event, replay, discard, erase },
            attemptLists: attemptLists(() => together(pool, IMPATIENT_ON_SERVER, { prepare })),
            replays: { ...replayStore(write), get: replayStore(read).get, list: replayStore(read).list, advance: replayStore(db).advance },
            get: (id: string, options?: ReadOptions) => readers(options).deliveries.get(id),
            attempts: (id: string, options?: ReadOptions) => readers(options).deliveries.attempts(id),
            database: POSTGRES,
            name: pool.embedded === true ? 'The embedded database' : 'PostgreSQL',
        }),
        settings: Object.assign(settings(db), { database: POSTGRES }),
    };
}
