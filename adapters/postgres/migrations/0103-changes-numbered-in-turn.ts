import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/*
 * A change of an exporter has the lock of the turns before it takes its number. It took the number first: what ended for good between that and the lock had
 * not seen the change, and a later number, so that it held its key although nothing was to be held any more.
 *
 * Whoever notes that a place holds its key takes its number without the lock, and asks for it afterwards. If the change has the lock first, the other sees the
 * change once it has the lock, and holds nothing. If the other has it first, it has committed before the change takes its number, which is the later one.
 *
 * Nor does who takes a place need the lock for its number, as a transaction of the application that accepts does not have it. A place that a change passes by
 * has its turn when the one before it ends: an exporter that is not ordered holds no key.
 */
const sql = rewritten('release_order', [
    [
        "    its_number := nextval('scanwire.order_steps');\n",
        `    -- It has the exporter's row, as always before this lock, and waits for no row after it.
    perform pg_advisory_xact_lock(hashtext('scanwire.turns'), 0);
    its_number := nextval('scanwire.order_steps');
`,
    ],
]);

export const changesNumberedInTurn: Migration = { id: '0103-changes-numbered-in-turn', sql };
