import { acceptanceLaws } from './acceptance-laws.ts';
import { claimLaws } from './claim-laws.ts';
import type { ContractTest } from './contract-test.ts';
import { deliveryLaws } from './delivery-laws.ts';
import { dispatchLaws } from './dispatch-laws.ts';
import { exporterLaws } from './exporter-laws.ts';
import { settlementLaws } from './settlement-laws.ts';
import { sweepLaws } from './sweep-laws.ts';
import type { Laws, WebhookStores } from './webhook-stores.ts';

const LAWS: Laws = {
    ...exporterLaws,
    ...acceptanceLaws,
    ...dispatchLaws,
    ...claimLaws,
    ...settlementLaws,
    ...sweepLaws,
    ...deliveryLaws,
};

/**
 * Registers one test for each thing that an `ExporterStore` and a `DeliveryStore` over the same data must do.
 *
 * @param test As `test(name, run)` of your test runner.
 * @param create Makes empty stores for one test; they are stopped after it.
 *
 * @example
 * webhookStoresContract(test, async () => ({ ...memoryWebhooks(), stop: async () => {} }));
 */
export function webhookStoresContract(test: ContractTest, create: () => Promise<WebhookStores>): void {
    for (const [name, law] of Object.entries(LAWS)) {
        test(name, async () => {
            const stores = await create();
            try {
                await law(stores);
            } finally {
                await stores.stop();
            }
        });
    }
}
