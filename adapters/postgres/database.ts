import Joi from 'joi';
import type { Clock } from '../../lib/clock.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { checked, clockSchema, isUuid } from '../../lib/schema-validation.ts';
import type { Executor } from '../../lib/transaction.ts';
import { within } from '../../lib/within.ts';
import {
    applicationError,
    IN_FAILED_TRANSACTION,
    isRolledBack,
    losesConnection,
    rolledBack,
    silent,
    sqlState,
    storeError,
} from './database-errors.ts';
import { beginsOtherwise } from './isolation.ts';
import { heeded, type Leaver, leaving, type Reader, untilLeft } from './left-statements.ts';
import { isClient, isHostPool } from './own-pool.ts';
import { driven, forgot } from './prepared.ts';
import { unlessSilent, type Watched, watching } from './silence.ts';

/** A client checked out of a pool, for several statements in one session. A `pg.PoolClient` fits. */
export interface ClientLike extends Executor {
    /** Gives the client back; with true or an error, its connection is closed and not used again. */
    release(destroy?: Error | boolean): void;
    on(event: 'error', listener: (error: Error) => void): unknown;
    removeListener(event: 'error', listener: (error: Error) => void): unknown;
}

/** What the stores need of a pool. A `pg.Pool` fits, and so does the embedded database. Whoever made the pool ends it. */
export interface PoolLike extends Executor {
    /** True of the embedded database. */
    readonly embedded?: boolean;
    /** Of the embedded database: resolves once nobody uses it, after so many milliseconds at the latest. */
    othersFirst?(patience: number): Promise<void>;
    connect(): Promise<ClientLike>;
}

/** What every store is made of. */
export interface PostgresStoresOptions {
    /** A `pg.Pool` or the embedded database, its schema brought up to date by `migrate(pool)`. It stays the caller's to end. */
    readonly pool: PoolLike;
    /** The time that is written into hosts and records; that of the database by default. */
    readonly clock?: Clock;
}

/**
 * Refuses what is no pool, where it is given and not at the first statement.
 *
 * @param of What it was given to, for example `postgresStores`.
 * @throws ScanwireError `MISCONFIGURED`, field `pool`.
 */
export function assertPool(pool: unknown, of: string): asserts pool is PoolLike {
    const given = Object(pool) as Partial<PoolLike>;
    if (typeof given.query !== 'function' || typeof given.connect !== 'function' || isClient(given)) {
        const rule = 'must be a pool of node-postgres or the embedded database: an object with query and connect, and no client';
        throw new ScanwireError('MISCONFIGURED', `${of}: pool ${rule}`, { field: 'pool' });
    }
}

/** Of every store: one that is made with others gets the options of all of them. */
const storeSchema = Joi.object({ pool: Joi.any(), clock: clockSchema, prepare: Joi.boolean(), notify: Joi.boolean() });

/**
 * Refuses options that no store can work with.
 *
 * @param of What they were given to, for example `postgresStores`.
 * @throws ScanwireError `MISCONFIGURED` that names the option.
 */
export function assertStoreOptions(options: { readonly pool: unknown } | undefined, of: string): void {
    assertPool(options?.pool, `${of} options`);
    checked(storeSchema, options, { subject: `${of} options`, code: 'MISCONFIGURED' });
}

/** Whether connections keep what they have parsed and planned. */
export interface PreparingOptions {
    /**
     * Whether connections of the pool prepare statements that come again and again, each under a name. False behind a pooler that pools
     * transactions and does not keep prepared statements itself. Default true, for a pool of node-postgres.
     */
    readonly prepare?: boolean;
}

interface SessionOptions extends PreparingOptions {
    /** Makes of a connection what takes the statements instead. */
    readonly through?: (client: ClientLike) => Executor;
}

/** How long the database is waited for, in milliseconds. A connection that is silent for longer counts as lost and is replaced. */
export interface Patience {
    /** For a connection of the pool. 4,000 by default. */
    readonly connect?: number;
    /** For the answer to a statement. 25,000 by default. */
    readonly statement?: number;
    /** For the answer to a question before it, the begin of a transaction: what is silent is seen by that, whatever the statement may take. None is asked by default. */
    readonly probe?: number;
    /** After which the server itself ends a statement, which is alone in a transaction then. By default it works on when nobody waits any more. */
    readonly onServer?: number;
    /** Ends the waiting at once, with its reason. */
    readonly signal?: AbortSignal;
}

/** For what somebody waits for at the other end of an HTTP request: the connection and the answer together in less than 10 s. */
export const IMPATIENT: Patience = { statement: 4_500 };

/**
 * The same for what may take long on a loaded database: who asks again and again leaves nothing running there. The server ends it before we lose
 * patience, so that the connection can be used again. It takes two more round trips, which what is found by its key does without.
 */
export const IMPATIENT_ON_SERVER: Patience = { statement: 5_500, onServer: 4_250 };

/**
 * What somebody waits for that changes rows: it may take its time, and is done even if nobody waits any more, but no database that is silent is asked, and
 * one that falls silent meanwhile is not waited for.
 */
export const IMPATIENT_OF_SILENCE: Patience = { probe: IMPATIENT.statement as number };

/**
 * Runs statements in one transaction: committed when `run` resolves, rolled back when it rejects. A connection that does not even
 * take the rollback is dropped. After a deadlock it is the caller's to run again: `run` may have done more than statements.
 *
 * @throws What `run` throws; ScanwireError `UNAVAILABLE` when the database cannot be used, `MISCONFIGURED` when it lacks a right or `migrate`, or
 *     when `run` resolved although a statement had failed, by which all of them were rolled back.
 */
export async function transaction<T>(pool: PoolLike, run: (client: Executor) => Promise<T>, patience: Patience = {}): Promise<T> {
    const { probe: _, ...unhurried } = patience;
    // The embedded database runs one statement at a time, and what somebody else's takes says nothing.
    const shown = pool.embedded === true ? unhurried : watching(pool, patience);
    return await withClient(pool, patience, (client, drop) => inTransaction(client, drop, run, shown));
}

/**
 * The same for an application: what its own statements get, and its commit, comes through as the database said it, but for `UNAVAILABLE`. Stores
 * and `publish` that are given the client as `tx` say what is theirs.
 *
 * @throws What `run` throws; ScanwireError `UNAVAILABLE` when the database cannot be used, with which the answer of a commit may have been lost;
 *     `MISCONFIGURED` when `run` resolved although a statement had failed, by which all of them were rolled back.
 */
export async function applicationTransaction<T>(
    pool: PoolLike,
    run: (client: Executor) => Promise<T>,
    patience: Patience = {},
): Promise<T> {
    assertPool(pool, 'transaction');
    if (typeof run !== 'function') {
        throw new ScanwireError('MISCONFIGURED', 'run must be a function of the client', { field: 'run' });
    }
    return await withClient(pool, patience, (client, drop) => inTransaction(client, drop, run, patience, applicationError));
}

async function inTransaction<T>(
    client: Executor,
    drop: () => void,
    run: (statements: Executor) => Promise<T>,
    patience: Watched<Patience>,
    said = storeError,
): Promise<T> {
    const { onServer, statement, probe } = patience;
    const startedAt = performance.now();
    let failed: unknown;
    const noting = (error: unknown): unknown => {
        failed = sqlState(error) === IN_FAILED_TRANSACTION ? failed : error;
        return said(error);
    };
    // What the server ends is waited for as one, however slow each answer is.
    const statements = (): Executor =>
        guarded(
            client,
            onServer === undefined || statement === undefined
                ? patience
                : { ...patience, statement: Math.max(1, Math.round(statement - (performance.now() - startedAt))) },
            noting,
        );
    let result: T;
    let ended: object;
    try {
        // A statement that waited for a lock must see what the one before committed, whatever the application's database starts with.
        const begin = 'begin isolation level read committed';
        const first = probe === undefined ? statements() : guarded(client, { ...patience, statement: probe, beside: undefined }, noting);
        await first.query(onServer === undefined ? begin : `${begin}; set local statement_timeout = ${onServer}`);
        result = await run(statements());
        ended = await statements().query('commit');
    } catch (error) {
        // A connection that is silent would be so once more.
        if (losesConnection(error)) {
            drop();
        } else {
            await statements().query('rollback').catch(drop);
        }
        throw error;
    }
    // What `run` has caught has failed all the same: the server then takes the commit for a rollback, and says so by its tag only.
    if ((ended as { readonly command?: unknown }).command === 'ROLLBACK') {
        throw rolledBack(failed);
    }
    return result;
}

/** Times that a statement, or a slice of an import, is run that the database rolls back for the sake of another one. */
export const TRIES = 3;

/**
 * A pool whose statements and connections are waited for so long and no longer, at read committed, with every error passed through {@link storeError}. A
 * statement that was rolled back by a deadlock or a serialisation failure is run again: alone in its transaction, it has done nothing. So is
 * one whose connection has lost what it had prepared.
 */
export function patiently(pool: PoolLike, patience: Patience = {}, { prepare = true, through }: SessionOptions = {}): Reader {
    const isDriven = through === undefined && isHostPool(pool);
    const session = through ?? ((client: ClientLike): Executor => (isDriven ? driven(client, prepare) : client));

    async function runOnce<Row>(client: ClientLike, drop: () => void, text: string, values?: unknown[]) {
        const { onServer, probe } = patience;
        const run = (statements: Executor) => statements.query<Row>(text, values);
        const statements = session(client);
        // The embedded database runs one statement at a time, and hears of no time-out meanwhile.
        if (pool.embedded === true) {
            return await run(guarded(statements, patience));
        }

        const question = guarded(client, probe === undefined ? patience : { ...patience, statement: probe });
        if (onServer !== undefined || (await beginsOtherwise(pool, question))) {
            return await inTransaction(statements, drop, run, watching(pool, patience));
        }
        if (probe !== undefined) {
            await question.query('select');
        }
        return await run(guarded(statements, watching(pool, patience)));
    }

    async function run<Row>(client: ClientLike, drop: () => void, text: string, values?: unknown[]) {
        for (let tries = 1; ; tries += 1) {
            try {
                return await runOnce<Row>(client, drop, text, values);
            } catch (error) {
                if (losesConnection(error)) {
                    drop();
                }
                const again = isRolledBack(error) || (isDriven && prepare && forgot(client, text, sqlState(error)));
                if (tries === TRIES || !again) {
                    throw error;
                }
            }
        }
    }

    return {
        query: <Row>(text: string, values?: unknown[], leaver?: Leaver) =>
            withClient(pool, leaving(patience, leaver), (client, drop) => {
                const work = run<Row>(client, drop, text, values);
                return leaver === undefined ? work : untilLeft(work, leaver, { pool, client, drop });
            }),
    };
}

/**
 * A pool for the statements of one operation, for which somebody waits as for one: what those before have taken is taken from the patience with the next.
 * A connection is waited for as long for each, so that all take no longer than one that gets its connection as late as it may.
 */
export function together(pool: PoolLike, { statement = 25_000, ...patience }: Patience, options: SessionOptions = {}): Executor {
    const startedAt = performance.now();
    return {
        async query<Row>(text: string, values?: unknown[]) {
            const taken = Math.round(performance.now() - startedAt);
            const { onServer } = patience;
            if (taken >= Math.min(statement, onServer ?? statement)) {
                throw silent(`has not answered all that was asked within ${taken} ms`);
            }
            const left = { ...patience, statement: statement - taken, ...(onServer !== undefined && { onServer: onServer - taken }) };
            return await patiently(pool, left, options).query<Row>(text, values);
        },
    };
}

/** A connection, or a transaction of the application's, whose statements are waited for so long, with every error passed through `said`. */
export function guarded(
    executor: Executor,
    { statement = 25_000, signal, beside }: Watched<Patience> = {},
    said: (error: unknown) => unknown = storeError,
): Executor {
    const late = (): Error => silent(`has not answered within ${statement} ms`);
    const rethrow = (error: unknown): never => {
        throw said(error);
    };
    return {
        // Query builders return what runs its statement again each time that it is waited for.
        query: <Row>(text: string, values?: unknown[]) => {
            const answer = within(Promise.resolve(executor.query<Row>(text, values)), { timeout: statement, late, signal });
            return (beside === undefined ? answer : unlessSilent(beside, answer)).catch(rethrow);
        },
    };
}

/** @param use Gets a function that keeps the connection from being used again. */
export async function withClient<T>(
    pool: PoolLike,
    { connect = 4_000, signal: leaver }: Omit<Patience, 'signal'> & { readonly signal?: Leaver },
    use: (client: ClientLike, drop: () => void) => Promise<T>,
): Promise<T> {
    const client = await connected(pool, connect, leaver);
    let dropped = false;
    const drop = (): void => {
        dropped = true;
    };

    // A client that is checked out emits the loss of its connection, and an unheard error would end the process.
    client.on('error', drop);
    try {
        return await use(client, drop);
    } finally {
        client.removeListener('error', drop);
        client.release(dropped);
    }
}

async function connected(pool: PoolLike, timeout: number, leaver: Leaver | undefined): Promise<ClientLike> {
    let signal = typeof leaver === 'function' ? undefined : leaver;
    signal?.throwIfAborted();
    const connecting = pool.connect();
    try {
        if (typeof leaver === 'function') {
            signal = await heeded(leaver, connecting);
        }
        return await within(connecting, { timeout, late: () => silent(`has given no connection within ${timeout} ms`), signal });
    } catch (error) {
        // One that comes all the same, or has come in the moment in which it was given up, is nobody's.
        connecting.then(
            (client) => client.release(),
            () => undefined,
        );
        throw signal?.aborted === true && error === signal.reason ? error : storeError(error);
    }
}

/** The id as a parameter: null, which equals no `uuid`, where the database would refuse the text. */
export function uuidOrNull(text: string): string | null {
    return isUuid(text) ? text : null;
}

/** A `timestamptz` as the driver gives it: a Date, unless the application has told its driver otherwise. */
export type Time = Date | string;

/** What is selected for a `T`: its fields under their own names, times as the driver gives them. */
export type Row<T> = { readonly [Field in keyof T]: T[Field] extends Date ? Time : T[Field] extends Date | null ? Time | null : T[Field] };

/** The `T` of a row, with these fields made Dates. */
export function withDates<T>(row: Row<T>, times: readonly (keyof T)[]): T {
    const date = (time: unknown): Date | null => (time === null ? null : new Date(time as Time));
    return { ...row, ...Object.fromEntries(times.map((field) => [field, date(row[field])])) } as T;
}
