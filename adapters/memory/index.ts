export { memoryApiKeys } from './api-keys.ts';
export {
    type MemoryInventory,
    type MemoryInventoryOptions,
    memoryInventory,
    type NewNote,
    type NewSession,
    type NewVuln,
} from './inventory.ts';
