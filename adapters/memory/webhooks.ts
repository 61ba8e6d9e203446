import type { DeliveryStore, ExporterStore } from '../../lib/webhooks/store.ts';
import { deliveryStore } from './delivery-store.ts';
import { exporterStore } from './exporter-store.ts';
import type { WebhookState } from './webhook-state.ts';

/** Exporters and deliveries in the memory of this process, gone with it: for tests and for trying things out. */
export function memoryWebhooks(): { readonly exporters: ExporterStore; readonly deliveries: DeliveryStore } {
    const state: WebhookState = { exporters: new Map(), events: new Map(), deliveries: new Map(), unfinished: new Set() };
    return { exporters: exporterStore(state), deliveries: deliveryStore(state) };
}
