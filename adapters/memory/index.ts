export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export { type MemoryApiKeysOptions, memoryApiKeys } from './api-keys.ts';
export { type MemoryAuditOptions, memoryAudit } from './audit.ts';
export {
    type MemoryInventory,
    type MemoryInventoryOptions,
    memoryInventory,
    type NewNote,
    type NewSession,
    type NewVuln,
} from './inventory/inventory.ts';
export { memoryQueue } from './queue.ts';
export { type MemoryRecordsOptions, memoryRecords } from './records.ts';
export { type MemoryWebhooksOptions, memoryWebhooks } from './webhooks/webhooks.ts';
