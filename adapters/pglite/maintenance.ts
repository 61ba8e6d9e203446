import type { Ticker } from '../../lib/clock.ts';
import { analysis, inTurn, LARGE } from '../../lib/giving-way.ts';
import type { Executor } from '../../lib/transaction.ts';
import { freezing } from './freezing.ts';
import { type Rests, restsOf } from './rests.ts';

/** What is maintained, and when. */
export interface MaintenanceOptions {
    readonly database: Executor;
    /** How many times anything was asked of the database since it was opened. */
    requests(): number;
    readonly ticker: Ticker;
    /** Whether something is under way that writes much and will end: until then nothing is vacuumed. */
    atWork?(): Promise<boolean>;
    /** How many transactions old a database may become before what is so old in it is frozen; of 2^31 no more can be told apart. */
    readonly freezeAge?: number;
}

/** The rounds of maintenance. */
export interface Maintenance {
    /** Lets no round begin until what it resolves with is called; resolves after the one that is running. */
    pause(): Promise<() => void>;
    /** Ends it, after the round that is running. */
    end(): Promise<void>;
}

const MB = 1_048_576;
const EVERY = 15_000;
/** With fewer requests than this since the last tick (workers that wait for work make some) nobody minds a pause. */
const QUIET_BELOW = 60;
/**
 * How much may be written before a quiet, and before any, moment is used to clear up. A checkpoint after 8 MB takes half as long as one after 64 MB, but what
 * is written afterwards, with whole pages at first, is four times as much.
 */
const WRITTEN = { whenQuiet: 4 * MB, always: 64 * MB };
/**
 * How many dead rows for each live one make a vacuum worth while. It reads all indexes of the table, so that it stops everybody for some tenths of a second
 * where a large one has few dead rows too, and the longer the more there are. Without the indexes (`index_cleanup off`) it finds little to do that
 * reads and updates of a page have not done already.
 */
const DEAD = { whenQuiet: 0.03, always: 0.05 };
/** What share of the rows has changed when the table is analysed again. */
const CHANGED = 0.1;
/** Tables with fewer dead or changed rows are not worth a visit. */
const ROWS = 500;
/** That of PostgreSQL's own autovacuum. */
const FREEZE_AGE = 200_000_000;

/**
 * A vacuum that was cut off so often, over more than half an hour, in a table of which such a share is dead, goes to its end although others wait: without any the
 * table would grow for ever.
 */
const LAST_RESORT = { cuts: 8, deadPerLive: 0.2 };

/**
 * Does what a server's background processes would do, which PGlite has not: checkpoints (without any the write-ahead log
 * grows for ever, and with it the time a start takes after a crash), vacuum with analyse of the tables that changed, and freezing of what is old.
 *
 * The first round comes with the first tick.
 */
export async function maintain(options: MaintenanceOptions): Promise<Maintenance> {
    const { database, requests, ticker, atWork = async () => false, freezeAge = FREEZE_AGE } = options;
    let clearedAt = await writtenBytes(database);
    let seen = requests();
    let owed = false;
    const rests = restsOf();
    let work: Promise<void> = Promise.resolve();
    let ended = false;
    let pauses = 0;
    const enough = async (): Promise<boolean> => ended || (await writtenBytes(database)) - clearedAt >= WRITTEN.always;
    const freeze = freezing({ database, freezeAge, atWork, enough });

    async function tick(): Promise<void> {
        const asked = requests() - seen;
        const written = (await writtenBytes(database)) - clearedAt;
        const due = written >= (asked < QUIET_BELOW ? WRITTEN.whenQuiet : WRITTEN.always);
        const isOwed = rests.pass() || owed;
        const spared = (due || isOwed) && (await atWork());
        if (due || (isOwed && !spared)) {
            const dead = asked < QUIET_BELOW ? DEAD.whenQuiet : DEAD.always;
            await clearUp(database, rests, spared ? Number.POSITIVE_INFINITY : dead, () => ended);
            if ((due || owed) && !ended) {
                await database.query('checkpoint');
                clearedAt = await writtenBytes(database);
            }
        }

        owed = spared;
        await freeze();
        seen = requests();
    }

    const stop = ticker(() => {
        // A database that fails here fails its callers as well.
        work = pauses > 0 ? work : work.then(tick).catch(() => {});
    }, EVERY);

    return {
        async pause() {
            pauses += 1;
            await work;
            return () => {
                pauses -= 1;
            };
        },

        async end() {
            ended = true;
            stop();
            await work;
        },
    };
}

/** A table that has changed, and what is to be done with it. */
interface Changed {
    readonly name: string;
    readonly large: boolean;
    readonly dead: boolean;
    readonly changed: boolean;
    /** Whether it must not wait for a quiet moment for ever. */
    readonly crowded: boolean;
}

/** Where `$1` rows at least, and for each live one `$2`, are dead, or `$3` have changed since it was analysed; large is what has more bytes than `$4`, crowded what has `$5` dead ones. */
const CHANGED_TABLES = `
select format('%I.%I', schemaname, relname) as name, pg_catalog.pg_total_relation_size(relid) > $4 as large, dead, changed, crowded
from pg_catalog.pg_stat_user_tables, lateral (select
    n_dead_tup >= greatest($1, n_live_tup * $2::float) as dead,
    n_mod_since_analyze >= greatest($1, n_live_tup * $3::float) as changed,
    n_dead_tup >= n_live_tup * $5::float as crowded)
where dead or changed
order by n_dead_tup desc`;

/**
 * Table by table, so that others get their turn in between. Where few rows are dead there is nothing to vacuum, which would go through the
 * whole of a table that an import has just filled.
 */
async function clearUp(database: Executor, rests: Rests, deadPerLive: number, ended: () => boolean): Promise<void> {
    // The session counts rows for itself and passes the counts on once in a while.
    await database.query('select pg_catalog.pg_stat_force_next_flush()');
    const { rows } = await database.query<Changed>(CHANGED_TABLES, [ROWS, deadPerLive, CHANGED, LARGE, LAST_RESORT.deadPerLive]);

    for (const { name, large, dead, changed, crowded } of rows) {
        if (ended()) {
            return;
        }

        if (dead) {
            await rests.unlessResting(`vacuum ${name}`, async (cuts) => {
                const givesWay = cuts < LAST_RESORT.cuts || !crowded;
                return await inTurn(database, `vacuum ${name}`, { givesWay });
            });
        }

        if (changed) {
            const statement = analysis(name, large);
            await rests.unlessResting(statement, async () => await inTurn(database, statement));
        }
    }
}

async function writtenBytes(database: Executor): Promise<number> {
    const { rows } = await database.query<{ bytes: string }>(
        `select (pg_catalog.pg_current_wal_lsn() - '0/0'::pg_catalog.pg_lsn)::text as bytes`,
    );
    return Number(rows[0]?.bytes ?? 0);
}
