import { ScanwireError } from '../../lib/errors.ts';
import type { Executor } from '../../lib/transaction.ts';

/** Whether bodies of events were erased since the table was last rewritten; fails where the schema knows of no such thing. */
const ERASED_SINCE = `select exists (
    select from scanwire.events v
    where v.erased_at > coalesce((select p.events_rewritten_at from scanwire.deployment p), '-infinity')
) as found, scanwire.now() as now`;

/** Whether bodies of events were erased later than that. */
const ERASED_AFTER = 'select exists (select from scanwire.events v where v.erased_at > $1) as found';

/** @throws ScanwireError `CONFLICT` when bodies were erased after {@link leaveNoErasedBodies} looked, which resolved with `since`. */
export async function assertNothingErased(database: Executor, since: Date | null): Promise<void> {
    const erased = since === null ? null : await database.query<{ found: boolean }>(ERASED_AFTER, [since]);
    if (erased?.rows[0]?.found === true) {
        throw new ScanwireError(
            'CONFLICT',
            'A body was erased while the embedded database was copied, and the copy may hold it: make it again',
        );
    }
}

/** Segments of the write-ahead log that are there to be used again, with what was in them. */
const AHEAD =
    'select from pg_catalog.pg_ls_waldir() where name > pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()) limit 1';

/** As many as may lie ahead, and some. */
const MAX_SEGMENTS = 16;

/**
 * Leaves nothing of bodies that were erased in the files of the embedded database: an update leaves the row as it was in its page, and its
 * text in the write-ahead log, and a copy of the files would have both. The tables are rewritten once after something was erased, which
 * holds everybody up for that long; then the log goes on in a new file until there is none of the old ones.
 *
 * @returns When it looked for them, by the time of the store; null where the schema knows of no such thing.
 */
export async function leaveNoErasedBodies(database: Executor): Promise<Date | null> {
    const looked = await database.query<{ found: boolean; now: Date }>(ERASED_SINCE).catch(unlessUnknown);
    const { found = false, now = null } = looked?.rows[0] ?? {};
    if (!found) {
        return now;
    }

    await database.query('vacuum full scanwire.events');
    await database.query('vacuum full scanwire.delivery_messages');
    await database.query('vacuum full scanwire.attempt_responses').catch(unlessUnknown);
    await database.query('set wal_recycle = off');
    try {
        for (let segments = 0; segments < MAX_SEGMENTS; segments += 1) {
            await database.query('select pg_catalog.pg_switch_wal()');
            await database.query('checkpoint');
            if (segments > 0 && (await database.query(AHEAD)).rows.length === 0) {
                break;
            }
        }
    } finally {
        await database.query('reset wal_recycle');
    }
    await database.query('update scanwire.deployment set events_rewritten_at = $1', [now]);
    return now;
}

/** A schema of before, or none. */
function unlessUnknown(error: unknown): null {
    if (/^(?:3F000|42P01|42703|42883)$/.test(String((error as { code?: unknown }).code))) {
        return null;
    }

    throw error;
}
