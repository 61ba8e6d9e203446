import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * What is in flight is counted to 500, and no longer to 100, before each exporter is asked for its room. A hundred receivers that answer after 8 s have more
 * than that in flight at twenty events a second, and acceptance for another exporter took three times as long beside them.
 */
const FURTHER = [
    ['            limit 100\n', '            limit 500\n'],
    ['f.flying < 100;', 'f.flying < 500;'],
] as const;

const sql = ['accept_single_event', 'accept_single_chosen_event'].map((name) => rewritten(name, FURTHER)).join('\n');

export const othersCountedFurther: Migration = { id: '0115-others-counted-further', sql };
