import { ScanwireError } from '../../lib/errors.ts';
import { inTurn } from '../../lib/giving-way.ts';
import type { Executor } from '../../lib/transaction.ts';
import { PAGES_OF_FILE } from './heap-page.ts';

/** Number of the bodies that were erased since they were last removed for good; fails where the schema does not count them. */
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

/**
 * What has bodies of events, what was made of them and what was answered to them, where the schema knows of events; and what an analysis has noted of
 * them, some of their texts.
 */
const TABLES = `
select
    c.oid,
    pg_catalog.format('%s.%I', c.relnamespace::pg_catalog.regnamespace, c.relname) as name,
    c.relname = 'pg_statistic' as notes,
    array_remove(array[pg_catalog.pg_relation_filepath(c.oid), pg_catalog.pg_relation_filepath(nullif(c.reltoastrelid, 0))], null) as files
from pg_catalog.pg_class c
where
    c.oid = 'pg_catalog.pg_statistic'::pg_catalog.regclass
    or c.relnamespace = pg_catalog.to_regnamespace('scanwire') and c.relkind = 'r'
        and c.relname in ('events', 'delivery_messages', 'attempt_responses')
order by notes`;

interface Table {
    readonly oid: number;
    readonly name: string;
    readonly notes: boolean;
    /** Names of its files and of those of its long values, from the data directory on; of each the first. */
    readonly files: readonly string[];
}

const FORGET_STATISTICS = 'delete from pg_catalog.pg_statistic where starelid = any ($1::oid[])';

/** How often one of them gives way to others before it goes to its end. */
const MOST_TRIES = 20;

/** Segments of the write-ahead log that are there to be used again, with what was in them. */
const AHEAD =
    'select from pg_catalog.pg_ls_waldir() where name > pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()) limit 1';

/** As many as may lie ahead, and some. */
const MAX_SEGMENTS = 16;

/**
 * Removes what is left of bodies that were erased: an update leaves the row as it was in its page, as does its removal, and its text in the
 * write-ahead log, and a copy of the files would have both. A vacuum removes the row, whose bytes stay in the room between others: a copy has
 * none of that room (see {@link filesOfBodies}). Then the log goes on in a new file until there is none of the old ones. A schema of before, which
 * does not count what was erased, is treated so each time.
 *
 * @returns What {@link assertNothingErased} is told; null where nothing is counted.
 * @throws ScanwireError `CONFLICT` when a body was erased meanwhile.
 */
export async function leaveNoErasedBodies(database: Executor): Promise<string | null> {
    const count = await erasedBodies(database);
    const { rows: tables } = await database.query<Table>(TABLES);
    if (count === '0' || tables.length === 1) {
        return count;
    }

    await removeDead(database, tables);
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

/** Says of a file, by its name from the data directory on, whether its pages may hold bodies, and at which page of its table it begins; null where none may. */
export async function filesOfBodies(database: Executor): Promise<(name: string) => number | null> {
    const { rows } = await database.query<Table>(TABLES);
    const files = new Set(rows.flatMap((table) => table.files));
    return (name) => {
        const [, first = name, part = 0] = /^(.*)\.(\d+)$/.exec(name) ?? [];
        return files.has(first) ? Number(part) * PAGES_OF_FILE : null;
    };
}

async function removeDead(database: Executor, tables: readonly Table[]): Promise<void> {
    await database.query(FORGET_STATISTICS, [tables.map(({ oid }) => oid)]);
    for (const { name } of tables) {
        // Indexes have nothing of bodies, and what is dead in them is removed by a later vacuum.
        await untilDone(database, `vacuum (index_cleanup off) ${name}`);
    }
    for (const { name } of tables.filter(({ notes }) => !notes)) {
        await untilDone(database, `analyze ${name}`);
    }
}

/** What a vacuum has done of the table before it was cut off, the next one need not do. */
async function untilDone(database: Executor, statement: string): Promise<void> {
    for (let tries = 1; !(await inTurn(database, statement, { givesWay: tries < MOST_TRIES })); tries += 1) {
        // The others had their turn.
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
