import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ScanwireError } from '../../lib/errors.ts';
import type { Executor } from '../../lib/transaction.ts';
import { assertPool, guarded, type PoolLike, transaction, withClient } from './database.ts';
import { isBehindOthers, sqlState, unreadableTimes } from './database-errors.ts';
import { migrations } from './migrations/index.ts';

/** Key of the advisory lock that lets one step run at a time: the bytes of `scan`, `wire`. */
const LOCK = [0x7363616e, 0x77697265];

/** For steps over large tables, and in all for locks of others. */
const PATIENCE = { statement: 60 * 60_000 };

/**
 * A step that waits for a table keeps everybody else from it and from those that it has, so it soon gives way for a while. How long it works is for no
 * role's `statement_timeout` to say: one that is cut off is cut off each time.
 */
const TIMEOUTS = `set local lock_timeout = '2s'; set local statement_timeout = 0`;
const PAUSE = 3_000;

/** An index that is built beside those who write keeps nobody waiting, however long it waits for them. */
const NO_TIMEOUTS = 'set lock_timeout = 0; set statement_timeout = 0';

/** Another process is at work: as the server says it of a lock that is not waited for. */
const TAKEN = Object.assign(new Error('The lock of migrations is taken'), { code: '55P03' });
const TURN = 200;

/** What the schema is brought to. */
export interface MigrateOptions {
    /** The steps to bring the schema to; all that this version has by default. */
    readonly steps?: readonly Migration[];
}

/**
 * Brings the schema `scanwire` up to this version: every step once, under a lock, so that any number of processes may start together. A step is a
 * transaction of its own, or an index that is built beside those who write its table, which a transaction cannot. A step that fails leaves
 * those before it done; one that cannot have its tables at once, because somebody's transaction has them, is tried again for an hour. Done by
 * hand: node-pg-migrate and umzug bring rollbacks and a command line, which nobody wants here, and more lines of set-up than these.
 *
 * @param pool Leads to the server itself, or through a pooler of sessions: one of transactions keeps no lock over an index.
 * @returns Ids of the steps that this call ran.
 * @throws ScanwireError `MISCONFIGURED` when the schema is newer than this version, or was made by other steps than these,
 *     and when the role lacks a right.
 * @throws ScanwireError `UNAVAILABLE` when the database cannot be used.
 */
export async function migrate(pool: PoolLike, options: MigrateOptions = {}): Promise<readonly string[]> {
    const { steps = migrations } = options;
    if (!Array.isArray(steps)) {
        throw new ScanwireError('MISCONFIGURED', 'migrate options: steps must be a list of migrations', { field: 'steps' });
    }

    assertPool(pool, 'migrate');
    const giveUp = performance.now() + PATIENCE.statement;
    const ran: string[] = [];
    for (;;) {
        try {
            const next = ran.length === 0 && (await isDone(pool, steps)) ? null : await runNext(pool, steps);
            if (next === null) {
                return ran;
            }

            ran.push(...next);
        } catch (error) {
            if (!isBehindOthers(error) || performance.now() > giveUp) {
                throw error;
            }

            await sleep((error as Error).cause === TAKEN ? TURN : PAUSE);
        }
    }
}

/** Asked without the patience that a step has: at every start but a few there is nothing to do, and a connection may be silent. */
async function isDone(pool: PoolLike, steps: readonly Migration[]): Promise<boolean> {
    return await transaction(pool, async (client) => {
        const { rows } = await client.query<{ found: boolean; style: string }>(
            `select pg_catalog.to_regclass('scanwire.migration') is not null as found, pg_catalog.current_setting('DateStyle') as style`,
        );
        if (rows[0]?.style.startsWith('ISO') === false) {
            throw unreadableTimes();
        }

        const done = rows[0]?.found === true ? await readLedger(client) : new Map<string, string>();
        assertFits(done, steps);
        return steps.every(({ id }) => done.has(id));
    });
}

/** @returns The id of the step that was run, none where another process ran it meanwhile; null when no step is left. */
async function runNext(pool: PoolLike, steps: readonly Migration[]): Promise<readonly string[] | null> {
    const found = await transaction<readonly string[] | IndexMigration | null>(
        pool,
        async (client) => {
            await takeLock(client, 'pg_try_advisory_xact_lock');
            await client.query(TIMEOUTS);
            await ofStep('that keeps the ledger', ensureLedger(client));

            const done = await readLedger(client);
            assertFits(done, steps);
            const next = steps.find(({ id }) => !done.has(id));
            if (next === undefined) {
                return null;
            }

            if ('index' in next && !(await isAlone(client, next.index, pool.embedded))) {
                return next;
            }

            await ofStep(next.id, client.query('sql' in next ? next.sql : `create index ${definitionOf(next)}`));
            await writeLedger(client, next);
            return [next.id];
        },
        PATIENCE,
    );
    return found !== null && 'index' in found ? await buildBesideWriters(pool, found) : found;
}

/** What the server says of a right that is lacking. It names what the right is on, and nothing that was sent. */
const DENIED = /^permission denied for (database|schema) (\S+)$/;

/** @throws ScanwireError of a lacking right that says at which step, and which right; whatever else a step throws as it is. */
async function ofStep<T>(name: string, work: Promise<T>): Promise<T> {
    try {
        return await work;
    } catch (error) {
        const { cause } = error as Error;
        if (!(error instanceof ScanwireError) || sqlState(cause) !== '42501') {
            throw error;
        }
        const { message } = cause as Error;
        const [, what, called] = DENIED.exec(message) ?? [];
        const remedy =
            what === undefined ? 'the role must own what it changes' : `grant create on ${what} ${called} to the role of the pool`;
        throw new ScanwireError('MISCONFIGURED', `The migration ${name} was refused: ${message} (42501); ${remedy}`, { cause });
    }
}

/**
 * By trying: a transaction that waits, in a statement or between two tries, is itself waited for by an index that is built meanwhile, so that
 * both would wait for ever.
 */
async function takeLock(client: Executor, by: 'pg_try_advisory_lock' | 'pg_try_advisory_xact_lock'): Promise<void> {
    const { rows } = await client.query<{ taken: boolean }>(`select pg_catalog.${by}($1, $2) as taken`, LOCK);
    if (rows[0]?.taken !== true) {
        throw new ScanwireError('UNAVAILABLE', 'The database is being migrated by another process', { cause: TAKEN });
    }
}

/** Whether an index is made at once, keeping nobody waiting: nobody else is connected, or nothing is there yet. */
async function isAlone(client: Executor, { name, table }: Index, embedded: boolean | undefined): Promise<boolean> {
    const { rows } = await client.query(`select from scanwire.${table} limit 1`);
    return (embedded === true || rows.length === 0) && (await isValid(client, name)) === null;
}

/** Whether the index has been built to its end; null where there is none of this name. */
async function isValid(client: Executor, name: string): Promise<boolean | null> {
    const sql = 'select indisvalid as valid from pg_catalog.pg_index where indexrelid = pg_catalog.to_regclass($1)';
    const { rows } = await client.query<{ valid: boolean }>(sql, [`scanwire.${name}`]);
    return rows[0]?.valid ?? null;
}

/** The lock is one of the session, since there is no transaction, and the session ends with the step, so that it is given back whatever happens. */
async function buildBesideWriters(pool: PoolLike, step: IndexMigration): Promise<readonly string[]> {
    return await withClient(pool, PATIENCE, async (client, drop) => {
        drop();
        const session = guarded(client, PATIENCE);
        await takeLock(session, 'pg_try_advisory_lock');
        if ((await readLedger(session)).has(step.id)) {
            return [];
        }

        await session.query(NO_TIMEOUTS);
        const valid = await isValid(session, step.index.name);
        if (valid === false) {
            // of a process that died meanwhile
            await session.query(`drop index concurrently scanwire.${step.index.name}`);
        }
        if (valid !== true) {
            await ofStep(step.id, session.query(sqlOf(step)));
        }

        await writeLedger(session, step);
        // At once: the server takes a moment to notice the end of a session.
        await session.query('select pg_catalog.pg_advisory_unlock($1, $2)', LOCK);
        return [step.id];
    });
}

const LEDGER = `create table if not exists scanwire.migration (
        id text primary key,
        checksum text not null,
        applied_at timestamptz(3) not null default now()
    )`;

/** A migration as a file for another migration tool. */
export interface MigrationFile {
    /** For example `0001-inventory-and-keys.sql`. */
    readonly name: string;
    /** To be run once. It tells {@link migrate} what it has done. */
    readonly sql: string;
    /** Whether it is run in one transaction. If not, each of its statements is one of its own, as `psql -f` does it; the first line says so too. */
    readonly transaction: boolean;
}

/** All steps in order, each as a file: what {@link migrate} does, for a tool of the application's own. */
export function migrationFiles(): readonly MigrationFile[] {
    const begin = `create schema if not exists scanwire;\n${LEDGER};\n`;
    return migrations.map((step, index) => ({
        name: `${step.id}.sql`,
        sql: `${'index' in step ? ownStatements(step) : index === 0 ? begin : ''}${sqlOf(step).trim().replace(/;?$/, ';')}
insert into scanwire.migration (id, checksum) values ('${step.id}', '${checksum(step)}');\n`,
        transaction: !('index' in step),
    }));
}

/** It may be run again after it was broken off. */
function ownStatements({ index }: IndexMigration): string {
    return `-- Must not run in a transaction: an index is built beside those who write.\ndrop index concurrently if exists scanwire.${index.name};\n`;
}

/** The schema may have been made for us by somebody with more rights, so it is made only where it is missing. */
async function ensureLedger(client: Executor): Promise<void> {
    const { rows } = await client.query<{ found: boolean }>(`select pg_catalog.to_regnamespace('scanwire') is not null as found`);
    if (rows[0]?.found !== true) {
        await client.query('create schema scanwire');
    }

    await client.query(LEDGER);
}

async function readLedger(client: Executor): Promise<ReadonlyMap<string, string>> {
    const { rows } = await client.query<{ id: string; checksum: string }>('select id, checksum from scanwire.migration');
    return new Map(rows.map(({ id, checksum }) => [id, checksum]));
}

async function writeLedger(client: Executor, step: Migration): Promise<void> {
    await client.query('insert into scanwire.migration (id, checksum) values ($1, $2)', [step.id, checksum(step)]);
}

function assertFits(done: ReadonlyMap<string, string>, steps: readonly Migration[]): void {
    const known = new Map(steps.map((step) => [step.id, checksum(step)]));
    for (const [id, sum] of done) {
        if (!known.has(id)) {
            throw new ScanwireError('MISCONFIGURED', `The database is newer than this version of scanwire: it knows the migration ${id}`);
        }

        if (known.get(id) !== sum) {
            throw new ScanwireError('MISCONFIGURED', `The migration ${id} of the database is not the one of this version of scanwire`);
        }
    }
}

function checksum(step: Migration): string {
    return createHash('sha256').update(sqlOf(step)).digest('hex');
}

function sqlOf(step: Migration): string {
    return 'sql' in step ? step.sql : `create index concurrently ${definitionOf(step)}`;
}

function definitionOf({ index: { name, table, keys } }: IndexMigration): string {
    return `${name} on scanwire.${table} ${keys}`;
}

/** A step of the schema. Once released it never changes: what comes later is another step. `id` begins with a number that orders it. */
export type Migration = SqlMigration | IndexMigration;

/** Statements in one transaction. */
export interface SqlMigration {
    readonly id: string;
    readonly sql: string;
}

/** An index of a table that grows. Those who write it need not wait for the step; statements that read by the index come in one behind it. */
export interface IndexMigration {
    readonly id: string;
    readonly index: Index;
}

/** For example `deliveries_kind` of the table `deliveries`, with the keys `(kind, seq) where kind is not null`. */
interface Index {
    readonly name: string;
    readonly table: string;
    readonly keys: string;
}
