import { ScanwireError } from '../../lib/errors.ts';
import type { Executor } from '../../lib/transaction.ts';

/** Number of the bodies that were erased since their tables were last rewritten; fails where the schema does not count them. */
const COUNT = 'select last_value::text as count from scanwire.erased_bodies';

/** Begins to count anew, unless another was erased after those `$1`. */
const COUNT_ANEW = `
select pg_catalog.setval('scanwire.erased_bodies', 0) from scanwire.erased_bodies where last_value = $1::bigint`;

async function erasedBodies(database: Executor): Promise<string | null> {
    const counted = await database.query<{ count: string }>(COUNT).catch(unlessUnknown);
    return counted?.rows[0]?.count ?? null;
}

/** @throws ScanwireError `CONFLICT` when bodies were erased after {@link leaveNoErasedBodies} looked, which resolved with `before`. */
export async function assertNothingErased(database: Executor, before: string | null): Promise<void> {
    if (before !== null && (await erasedBodies(database)) !== before) {
        throw erasedMeanwhile();
    }
}

function erasedMeanwhile(): ScanwireError {
    return new ScanwireError(
        'CONFLICT',
        'A body was erased while the embedded database was copied, and the copy may hold it: make it again',
    );
}

/** What has bodies of events, what was made of them and what was answered to them; none where the schema knows of no events. */
const TABLES = `
select c.oid, pg_catalog.format('scanwire.%I', c.relname) as name
from pg_catalog.pg_class c
where
    c.relnamespace = pg_catalog.to_regnamespace('scanwire') and c.relkind = 'r'
    and c.relname in ('events', 'delivery_messages', 'attempt_responses')`;

/** What an analysis has noted of them: some of their texts. */
const FORGET_STATISTICS = 'delete from pg_catalog.pg_statistic where starelid = any ($1::oid[])';

/** Segments of the write-ahead log that are there to be used again, with what was in them. */
const AHEAD =
    'select from pg_catalog.pg_ls_waldir() where name > pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()) limit 1';

/** As many as may lie ahead, and some. */
const MAX_SEGMENTS = 16;

/**
 * Leaves nothing of bodies that were erased in the files of the embedded database: an update leaves the row as it was in its page, as does its removal, and
 * its text in the write-ahead log, and a copy of the files would have both. The tables are rewritten once after something was erased, which
 * holds everybody up for that long; then the log goes on in a new file until there is none of the old ones. A schema of before, which does
 * not count what was erased, is rewritten each time.
 *
 * @returns What {@link assertNothingErased} is told; null where nothing is counted.
 * @throws ScanwireError `CONFLICT` when a body was erased while they were rewritten.
 */
export async function leaveNoErasedBodies(database: Executor): Promise<string | null> {
    const count = await erasedBodies(database);
    const { rows: tables } = await database.query<{ oid: number; name: string }>(TABLES);
    if (count === '0' || tables.length === 0) {
        return count;
    }

    await rewrite(database, tables);
    await goOnInNewLog(database);
    if (count === null) {
        return null;
    }

    const { rows } = await database.query(COUNT_ANEW, [count]);
    if (rows.length === 0) {
        throw erasedMeanwhile();
    }
    return '0';
}

async function rewrite(database: Executor, tables: readonly { readonly oid: number; readonly name: string }[]): Promise<void> {
    for (const { name } of tables) {
        await database.query(`vacuum full ${name}`);
    }

    await database.query(FORGET_STATISTICS, [tables.map(({ oid }) => oid)]);
    await database.query('vacuum full pg_catalog.pg_statistic');
    for (const { name } of tables) {
        await database.query(`analyze ${name}`);
    }
}

async function goOnInNewLog(database: Executor): Promise<void> {
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
}

/** A schema of before, or none. */
function unlessUnknown(error: unknown): null {
    if (/^(?:3F000|42P01)$/.test(String((error as { code?: unknown }).code))) {
        return null;
    }

    throw error;
}
