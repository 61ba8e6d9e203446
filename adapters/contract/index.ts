export { type ApiKeyStoreFixture, apiKeyStoreContract } from './api-keys.ts';
export type { ContractFixture, ContractTest } from './contract-test.ts';
export { deliveryQueueContract } from './delivery-queue.ts';
export { type InventoryFixture, inventoryContract } from './inventory.ts';
export { type RecordStoreFixture, recordStoreContract } from './records.ts';
export { webhookStoresContract } from './webhooks.ts';
