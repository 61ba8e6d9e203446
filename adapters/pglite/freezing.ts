import { inTurn, LARGE } from '../../lib/giving-way.ts';
import type { Executor } from '../../lib/transaction.ts';
import { isFrozen, PAGE } from './heap-page.ts';
import { restsOf } from './rests.ts';

/** What is kept from becoming too old. */
export interface FreezingOptions {
    readonly database: Executor;
    /** In transactions. */
    readonly freezeAge: number;
    atWork(): Promise<boolean>;
    /** Whether this round has to end. */
    enough(): Promise<boolean>;
}

/** At so many times the age no heed is paid to others any more: by default more than half of all ids are left then. */
const URGENT = 4;

/** The databases of the cluster that are older than `$1`: the oldest of all says what can be written. */
const OLD_DATABASES = `
select d.oid, d.datname as name, d.datname = pg_catalog.current_database() as own
from pg_catalog.pg_database d
where greatest(pg_catalog.age(d.datfrozenxid), pg_catalog.mxid_age(d.datminmxid)) > $1`;

interface Old {
    readonly oid: number;
    readonly name: string;
    readonly own: boolean;
}

/** The tables that are older than `$1`, catalogs included, by themselves or by their long values; urgent are those older than `$2`, large those with more bytes than `$3`. */
const OLD_TABLES = `
select
    pg_catalog.format('%s.%I', c.relnamespace::pg_catalog.regnamespace, c.relname) as name,
    age > $2 as urgent,
    pg_catalog.pg_total_relation_size(c.oid) > $3 as large
from pg_catalog.pg_class c
left join pg_catalog.pg_class long on long.oid = c.reltoastrelid
cross join lateral (select greatest(
    pg_catalog.age(c.relfrozenxid), pg_catalog.mxid_age(c.relminmxid),
    pg_catalog.age(long.relfrozenxid), pg_catalog.mxid_age(long.relminmxid)) as age) as ages
where c.relkind in ('r', 'm') and age > $1 and (c.relpersistence <> 't' or c.relnamespace = pg_catalog.pg_my_temp_schema())
order by age desc`;

interface OldTable {
    readonly name: string;
    readonly urgent: boolean;
    readonly large: boolean;
}

/**
 * PostgreSQL tells 2^31 transactions apart, and writes nothing rather than mix them up. A vacuum that freezes marks rows as older than all of
 * them; on a server the autovacuum does so.
 *
 * @returns One round of it, table by table, so that others get their turn in between.
 */
export function freezing({ database, freezeAge, atWork, enough }: FreezingOptions): () => Promise<void> {
    const rests = restsOf();
    const passOn = passedOver(database);
    const urgentAge = freezeAge * URGENT;

    async function freezeTables(): Promise<void> {
        const { rows } = await database.query<OldTable>(OLD_TABLES, [freezeAge, urgentAge, LARGE]);
        const spared = rows.some(({ urgent }) => !urgent) && (await atWork());
        for (const { name, urgent, large } of rows) {
            if (await enough()) {
                return;
            }

            if (urgent || !spared) {
                const freeze = vacuumOf(name, large);
                await rests.unlessResting(name, async () => await inTurn(database, freeze, { givesWay: !urgent }));
            }
        }

        // What was dropped or cleared away meanwhile counts no more, and the log of which transactions have ended is cut off.
        await database.query('vacuum (only_database_stats)');
    }

    return async () => {
        rests.pass();
        const { rows } = await database.query<Old>(OLD_DATABASES, [freezeAge]);
        for (const other of rows.filter(({ own }) => !own)) {
            await passOn(other);
        }
        if (rows.some(({ own }) => own)) {
            await freezeTables();
        }
    };
}

/**
 * Pages that are frozen are passed over by the next one, so that one that was cut off has not run in vain. What is dead in the indexes of a large
 * table keeps none of them, and is left to the clearing up.
 */
function vacuumOf(name: string, large: boolean): string {
    return `vacuum (freeze, skip_database_stats${large ? ', index_cleanup off, truncate off' : ''}) ${name}`;
}

/** The files of a database's tables and indexes. */
const FILES = `
select name from pg_catalog.pg_ls_dir('base/' || $1::text, true, false) as name where name ~ '^[0-9]+([.][0-9]+)?$'`;

/** Bytes that are read at once. */
const CHUNK = 64 * PAGE;

const READ = `select pg_catalog.pg_read_binary_file('base/' || $1::text || '/' || $2, $3, $4) as bytes`;

/** As if it had been vacuumed just now. */
const PASS_OVER = `
update pg_catalog.pg_database
set datfrozenxid = pg_catalog.pg_current_xact_id()::pg_catalog.xid, datminmxid = (pg_catalog.pg_control_checkpoint()).next_multixact_id
where oid = $1`;

/**
 * `initdb` has frozen the databases that others are made of, and nobody can be connected to them while we have the cluster open, so that nothing in
 * them grows old: but PostgreSQL does not know. Their pages are looked at before it is told.
 */
function passedOver(database: Executor): (other: Old) => Promise<void> {
    const notFrozen = new Set<number>();
    return async ({ oid, name }) => {
        if (notFrozen.has(oid)) {
            return;
        }

        if (await isFrozenDatabase(database, oid)) {
            await database.query(PASS_OVER, [oid]);
        } else {
            notFrozen.add(oid);
            warnOfUnfrozen(name);
        }
    };
}

async function isFrozenDatabase(database: Executor, oid: number): Promise<boolean> {
    const { rows: files } = await database.query<{ name: string }>(FILES, [oid]);
    for (const { name } of files) {
        for (let at = 0, bytes = null; bytes === null || bytes.length === CHUNK; at += CHUNK) {
            bytes = (await database.query<{ bytes: Buffer }>(READ, [oid, name, at, CHUNK])).rows[0]?.bytes ?? Buffer.alloc(0);
            if (!pagesOf(bytes).every(isFrozen)) {
                return false;
            }
        }
    }
    return files.length > 0;
}

function pagesOf(bytes: Buffer): Buffer[] {
    return Array.from({ length: Math.floor(bytes.length / PAGE) }, (_, page) => bytes.subarray(page * PAGE, (page + 1) * PAGE));
}

function warnOfUnfrozen(name: string): void {
    const message = `The database ${name} beside that of scanwire has rows that are not frozen: after 2^31 transactions nothing can be written any more. Stop scanwire and vacuum that database`;
    process.emitWarning(message, { type: 'ScanwireWarning', code: 'SCANWIRE_FREEZE' });
}
