export { memoryApiKeys } from './api-keys.ts';
export { memoryQueue } from './delivery-queue.ts';
export {
    type MemoryInventory,
    type MemoryInventoryOptions,
    memoryInventory,
    type NewNote,
    type NewSession,
    type NewVuln,
} from './inventory.ts';
export { type MemoryRecordsOptions, memoryRecords } from './records.ts';
export { memoryWebhooks } from './webhooks.ts';
