import Joi from 'joi';
import type { Clock } from '../../lib/clock.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { MAX_ID } from '../../lib/inventory/fields.ts';
import { checked, clockSchema } from '../../lib/schema-validation.ts';
import type { Executor } from '../../lib/transaction.ts';
import { within } from '../../lib/within.ts';
import { isHostPool } from './own-pool.ts';
import { forgot, preparing } from './prepared.ts';

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
    connect(): Promise<ClientLike>;
}

/** What every store is made of. */
export interface PostgresStoresOptions {
    /** A `pg.Pool` or the embedded database, its schema brought up to date by `migrate(pool)`. It stays the caller's to end. */
    readonly pool: PoolLike;
    readonly clock?: Clock;
}

/**
 * Refuses what is no pool, where it is given and not at the first statement.
 *
 * @param of What it was given to, for example `postgresStores`.
 * @throws ScanwireError `MISCONFIGURED`, field `pool`.
 */
export function assertPool(pool: unknown, of: string): asserts pool is PoolLike {
    const { query, connect } = (pool ?? {}) as Partial<Record<keyof PoolLike, unknown>>;
    if (typeof query !== 'function' || typeof connect !== 'function') {
        const rule = 'must be a pool of node-postgres or the embedded database: an object with query and connect';
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

/** How the statements of a pool go to its connections. */
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
    /** Ends the waiting at once, with its reason. */
    readonly signal?: AbortSignal;
}

/** For what somebody waits for at the other end of an HTTP request: the connection and the answer together in less than 10 s. */
export const IMPATIENT: Patience = { statement: 4_500 };

/**
 * Runs statements in one transaction: committed when `run` resolves, rolled back when it rejects. A connection that does not even
 * take the rollback is dropped. After a deadlock it is the caller's to run again: `run` may have done more than statements.
 *
 * @throws What `run` throws; ScanwireError `UNAVAILABLE` when the database cannot be used, `MISCONFIGURED` when it lacks a right or `migrate`.
 */
export async function transaction<T>(pool: PoolLike, run: (client: Executor) => Promise<T>, patience: Patience = {}): Promise<T> {
    return await withClient(pool, patience, async (client, drop) => {
        const statements = guarded(client, patience);
        try {
            // A statement that waited for a lock must see what the one before committed, whatever the application's database starts with.
            await statements.query('begin isolation level read committed');
            const result = await run(statements);
            await statements.query('commit');
            return result;
        } catch (error) {
            // A connection that is silent would be so once more.
            if (losesConnection(error)) {
                drop();
            } else {
                await statements.query('rollback').catch(drop);
            }
            throw error;
        }
    });
}

/** Times that a statement is run that the database rolls back for the sake of another one. */
const TRIES = 3;

/**
 * A pool whose statements and connections are waited for so long and no longer, with every error passed through {@link storeError}. A
 * statement that was rolled back by a deadlock or a serialisation failure is run again: alone in its transaction, it has done nothing. So is
 * one whose connection has lost what it had prepared.
 */
export function patiently(pool: PoolLike, patience: Patience = {}, { prepare = true, through }: SessionOptions = {}): Executor {
    const named = through === undefined && prepare && isHostPool(pool);
    const session = through ?? (named ? preparing : (client: ClientLike): Executor => client);
    return {
        query: <Row>(text: string, values?: unknown[]) =>
            withClient(pool, patience, async (client, drop) => {
                for (let tries = 1; ; tries += 1) {
                    try {
                        return await guarded(session(client), patience).query<Row>(text, values);
                    } catch (error) {
                        if (losesConnection(error)) {
                            drop();
                        }
                        const again = ROLLED_BACK.test(causeCode(error)) || (named && forgot(client, text, sqlState(error)));
                        if (tries === TRIES || !again) {
                            throw error;
                        }
                    }
                }
            }),
    };
}

/** A connection, or a transaction of the application's, whose statements are waited for so long, with every error passed through {@link storeError}. */
export function guarded(executor: Executor, { statement = 25_000, signal }: Patience = {}): Executor {
    const late = (): Error => silent(`has not answered within ${statement} ms`);
    return {
        // Query builders return what runs its statement again each time that it is waited for.
        query: <Row>(text: string, values?: unknown[]) =>
            within(Promise.resolve(executor.query<Row>(text, values)), { timeout: statement, late, signal }).catch(rethrow),
    };
}

/** @param use Gets a function that keeps the connection from being used again. */
export async function withClient<T>(
    pool: PoolLike,
    { connect = 4_000, signal }: Patience,
    use: (client: ClientLike, drop: () => void) => Promise<T>,
): Promise<T> {
    const client = await connected(pool, connect, signal);
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

async function connected(pool: PoolLike, timeout: number, signal: AbortSignal | undefined): Promise<ClientLike> {
    const connecting = pool.connect();
    let waiting = true;
    connecting.then(
        (client) => waiting || client.release(),
        () => undefined,
    );
    try {
        return await within(connecting, { timeout, late: () => silent(`has given no connection within ${timeout} ms`), signal });
    } catch (error) {
        waiting = false;
        throw storeError(error);
    }
}

function silent(what: string): ScanwireError {
    return new ScanwireError('UNAVAILABLE', `The database cannot be used now: it ${what}`);
}

/** Serialisation failure and deadlock. The others of class 40 may have been committed, or would fail again. */
const ROLLED_BACK = /^40001$|^40P01$/;

/** What the server says of a statement, in a session that goes on: class 40, resources, a lock or statement time-out, a system error. */
const SESSION_GOES_ON = /^(?:40|53|58)...$|^55P03$|^57014$/;

/** Whether a connection on which this came up is silent, lost, or leads to a server that is of no use. */
function losesConnection(error: unknown): boolean {
    return error instanceof ScanwireError && error.code === 'UNAVAILABLE' && !SESSION_GOES_ON.test(causeCode(error));
}

function causeCode(error: unknown): string {
    return sqlState((error as Error | null)?.cause);
}

function rethrow(error: unknown): never {
    throw storeError(error);
}

/** What Node says when a server cannot be reached or a connection broke. */
const NETWORK = new Set([
    'ECONNREFUSED',
    'ECONNRESET',
    'ECONNABORTED',
    'EPIPE',
    'ETIMEDOUT',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'ENOENT',
    'EACCES',
]);

/**
 * SQLSTATE classes and codes that say nothing about the statement: connection (08), authorisation (28), no such database (3D),
 * deadlock and serialisation (40), resources (53), lock time-out (55P03), operator intervention (57), system error (58); and a server
 * that a fail-over has left read-only (25006).
 */
const SERVER = /^(?:08|28|3D|40|53|57|58)...$|^55P03$|^25006$/;

/** What node-postgres says, without a code, of a connection that it has lost or a pool that is closed. */
const DRIVER = /^Connection terminated|^timeout exceeded when trying|not queryable$|^Cannot use a pool after|^Query read timeout/;

/** What the server says, as an internal error, when a file cannot grow beyond a limit or a quota. */
const NO_ROOM = /^could not (?:extend|write) /;

/**
 * The error as a store reports it: `UNAVAILABLE` when the database cannot be used now, `MISCONFIGURED` when it was not set up for this,
 * anything else as it is.
 */
export function storeError(error: unknown): unknown {
    if (error instanceof ScanwireError || !(error instanceof Error)) {
        return error;
    }

    const code = sqlState(error);
    const driverOrDisk = (code === '' && DRIVER.test(error.message)) || (code === 'XX000' && NO_ROOM.test(error.message));
    const unavailable = NETWORK.has(code) || SERVER.test(code) || driverOrDisk;
    return unavailable
        ? new ScanwireError('UNAVAILABLE', `The database cannot be used now${why(code)}`, { cause: error })
        : (refusal(code, error) ?? error);
}

/** What is no fault of the statement but of how the database was set up, and stays so until somebody does something. */
function refusal(code: string, cause: Error): ScanwireError | null {
    const isOurs = cause.message.includes('scanwire');
    if (code === '42703' || (isOurs && ABSENT.has(code))) {
        const message = `The database lacks something that a statement names: run migrate(pool) of this version of scanwire before (${code})`;
        return new ScanwireError('MISCONFIGURED', message, { cause });
    }
    if (code === '42501') {
        const rights = `usage on the schema scanwire and select, insert, update, delete on its tables; to migrate, create on the database`;
        const message = `The role of the pool lacks a right of these: ${rights} (${code})`;
        return new ScanwireError('MISCONFIGURED', message, { cause });
    }
    const [, table] = RAN_OUT.exec(code === '2200H' ? cause.message : '') ?? [];
    if (table !== undefined) {
        const message = `No id is left for new ${table}: ${MAX_ID} is the largest that clients read, and ids of what was removed do not come again`;
        return new ScanwireError('CONFLICT', message, { cause });
    }
    return null;
}

/** What the server says when the ids of a table have run out. */
const RAN_OUT = /"(workspaces|hosts|services|notes|vulns)_id_seq"/;

/** A schema, a table or a function is not there. An application runs statements of its own in our transactions, too. */
const ABSENT = new Set(['3F000', '42P01', '42883']);

/** The commonest causes in words: the server's own may quote what was sent. */
const CAUSES: ReadonlyMap<string, string> = new Map([
    ['ECONNREFUSED', 'nothing listens at its address'],
    ['ENOTFOUND', 'its host name is unknown'],
    ['ETIMEDOUT', 'its host does not answer'],
    ['3D000', 'the server has no database of this name'],
    ['28P01', 'user name or password is wrong'],
    ['28000', 'the server does not let this user in'],
    ['53300', 'the server has no connection left'],
    ['25006', 'the server takes no writes, as a standby after a fail-over: the address of the pool must lead to the primary'],
]);

function why(code: string): string {
    const cause = CAUSES.get(code);
    return `${cause === undefined ? '' : `: ${cause}`}${code === '' ? '' : ` (${code})`}`;
}

/** The code of an error of PostgreSQL or of the network, `''` when it has none. */
export function sqlState(error: unknown): string {
    const code = (error as { code?: unknown } | null)?.code;
    return typeof code === 'string' ? code : '';
}

/** Whether a unique index refused the row. */
export function isUniqueViolation(error: unknown): boolean {
    return sqlState(error) === '23505';
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether the database would take the text as a `uuid`; an id that it would refuse names nothing. */
export function isUuid(text: string): boolean {
    return UUID.test(text);
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
