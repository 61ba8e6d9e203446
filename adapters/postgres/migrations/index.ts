import { inventoryAndKeys } from './0001-inventory-and-keys.ts';
import { webhooks } from './0002-webhooks.ts';
import { records } from './0003-records.ts';
import type { Migration } from './migration.ts';

/** All steps in order. A new one goes to the end. */
export const migrations: readonly Migration[] = [inventoryAndKeys, webhooks, records];
