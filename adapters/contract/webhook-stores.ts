import type { Executor } from '../../lib/executor.ts';
import type { DeliveryStore, ExporterStore } from '../../lib/webhooks/store.ts';

/** A transaction of the host's, on a connection of its own. */
export interface HostTransaction {
    readonly tx: Executor;
    commit(): Promise<void>;
    rollback(): Promise<void>;
}

/** The stores under test, empty at first, sharing one database. */
export interface WebhookStores {
    readonly exporters: ExporterStore;
    readonly deliveries: DeliveryStore;
    /** Needed where `deliveries.transactions` is true. */
    readonly begin?: () => Promise<HostTransaction>;
    stop(): Promise<void>;
}

/** What every implementation does, by name. */
export type Laws = Readonly<Record<string, (stores: WebhookStores) => Promise<void>>>;
