import type { Executor } from '../../../lib/transaction.ts';
import { INTERRUPTIONS, interrupted } from '../../../lib/webhooks/outcomes/outcome.ts';
import { uuidOrNull } from '../database.ts';

/**
 * How many deliveries a statement cancels. Each needs an entry in several indexes, which takes half a millisecond on the embedded database, and
 * meanwhile nobody else can use its only connection.
 */
export const STEP = 150;

const MANY_WAITING = `
    (select count(*) from (
        select from scanwire.deliveries w where w.stage = 'waiting' and w.exporter_id = $1 limit ${STEP + 1}
    ) w) > ${STEP}`;
const HAS_MANY_WAITING = `select ${MANY_WAITING} as many`;

/** Whether exporter `$1` has more to cancel than one statement should. */
const HAS_MANY = `
select ${MANY_WAITING}
    or (select count(*) from (
        select from scanwire.deliveries h where h.stage = 'failed' and h.exporter_id = $1 and h.state = 'held' limit ${STEP + 1}
    ) h) > ${STEP} as many`;

const STOP = `update scanwire.exporters set state = 'stopped', stop_reason = null, updated_at = scanwire.now() where id = $1`;
const CANCEL_WAITING = `select scanwire.cancel_some_waiting($1, ${STEP}) as cancelled`;
const CANCEL_HELD = `select scanwire.cancel_some_held($1, $2, ${STEP}) as last`;
const REMOVE = 'select scanwire.remove_exporter($1, scanwire.now(), $2) as removed';
/** How many steps in a row may cancel nothing although many deliveries are left, before the last statement cancels
 * those that are left. */
const MAX_IDLE = 10;
const MAX_SEQ = '9223372036854775807';

/**
 * As `ExporterStore.remove` says. An exporter with a long backlog is stopped first, so that nothing more is accepted for it or sent to it. Its
 * backlog is cancelled in steps, and then it is removed. If this is cut short, the exporter stays, stopped, and another call removes it.
 */
export async function removeExporter(db: Executor, given: string): Promise<boolean> {
    const id = uuidOrNull(given);
    if ((await db.query<{ many: boolean }>(HAS_MANY, [id])).rows[0]?.many === true) {
        await db.query(STOP, [id]);
        await cancelAll(db, id);
    }

    const { rows } = await db.query<{ removed: boolean }>(REMOVE, [id, JSON.stringify(interrupted(0, INTERRUPTIONS.removed))]);
    return rows[0]?.removed ?? false;
}

async function cancelAll(db: Executor, id: string | null): Promise<void> {
    // A step finds fewer than there are where somebody else removes the exporter too, or hands out some of its deliveries while it is being
    // stopped.
    for (let idle = 0; idle < MAX_IDLE && (await db.query<{ many: boolean }>(HAS_MANY_WAITING, [id])).rows[0]?.many === true; ) {
        const { rows } = await db.query<{ cancelled: number }>(CANCEL_WAITING, [id]);
        idle = (rows[0]?.cancelled ?? 0) === 0 ? idle + 1 : 0;
    }

    let last: string | null = MAX_SEQ;
    while (last !== null) {
        const { rows }: { readonly rows: readonly { readonly last: string | null }[] } = await db.query(CANCEL_HELD, [id, last]);
        last = rows[0]?.last ?? null;
    }
}
