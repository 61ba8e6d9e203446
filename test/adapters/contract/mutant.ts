import type { WebhookStores } from '../../../adapters/contract/webhook-stores.ts';
import type { DeliveryStore, ExporterStore } from '../../../lib/webhooks/store.ts';

interface Fault {
    readonly exporters?: Partial<ExporterStore>;
    readonly deliveries?: Partial<DeliveryStore>;
}

/** Makes one thing wrong in honest stores: the methods that it gives replace theirs. */
export type Mutant = (exporters: ExporterStore, deliveries: DeliveryStore) => Fault;

/** By the name of the law that must catch it. */
export type Mutants = Readonly<Record<string, Mutant>>;

export function withFault(honest: WebhookStores, mutant: Mutant): WebhookStores {
    const { exporters, deliveries } = mutant(honest.exporters, honest.deliveries);
    return { ...honest, exporters: { ...honest.exporters, ...exporters }, deliveries: { ...honest.deliveries, ...deliveries } };
}
