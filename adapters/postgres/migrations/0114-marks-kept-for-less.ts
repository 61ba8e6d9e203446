import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * Each delivery that is stored to wait keeps the marks below it by a lock. `perform` makes a statement of that, which took an eighth of all that PostgreSQL
 * does to accept an event among many; an expression is evaluated where it stands, and takes next to nothing.
 */
const sql = rewritten('store_delivery', [
    ['\nbegin\n    new.stage :=', '\ndeclare\n    locked text;\nbegin\n    new.stage :='],
    [
        `perform pg_advisory_xact_lock_shared(hashtext('scanwire.waiting_marks')`,
        `locked := pg_advisory_xact_lock_shared(hashtext('scanwire.waiting_marks')`,
    ],
]);

export const marksKeptForLess: Migration = { id: '0114-marks-kept-for-less', sql };
