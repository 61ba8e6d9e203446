import type { DeliveryStore, ExporterStore } from '../../lib/webhooks/store.ts';
import { deliveries } from './deliveries.ts';
import { exporters } from './exporters.ts';
import type { PoolLike } from './pool.ts';
import { guarded } from './unavailable.ts';

/**
 * Exporters and deliveries in PostgreSQL 13 or later, or in the embedded database: one SQL for both. The schema comes from
 * migration `0002-webhooks`. The pool stays the caller's to close.
 */
export function postgresWebhooks({ pool }: { readonly pool: PoolLike }): {
    readonly exporters: ExporterStore;
    readonly deliveries: DeliveryStore;
} {
    const db = guarded(pool);
    return { exporters: exporters(db), deliveries: deliveries(db) };
}
