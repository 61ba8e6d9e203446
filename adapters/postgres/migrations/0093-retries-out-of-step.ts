import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * Who gets a place every 400 or 800 ms, as where exporters take turns at few slots, met the same part of the 800 ms again and again in which a place is kept for
 * retries: always or, mostly, never. No round time is in step with 872 ms.
 */
const REST = [['eighth := turn / 100 % 8;', 'eighth := turn / 109 % 8;']] as const;

export const retriesOutOfStep: Migration = { id: '0093-retries-out-of-step', sql: rewritten('hand_out_due_deliveries', REST) };
