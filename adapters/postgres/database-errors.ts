import { ScanwireError } from '../../lib/errors.ts';
import { MAX_ID } from '../../lib/inventory/fields.ts';
import { UNSTORABLE } from '../../lib/schema-validation.ts';

const silences = new WeakSet<object>();

/** Of a database that does not answer. */
export function silent(what: string): ScanwireError {
    const error = new ScanwireError('UNAVAILABLE', `The database cannot be used now: it ${what}`);
    silences.add(error);
    return error;
}

/** Whether it is of a database that does not answer: of a connection that was lost somebody has said so, and another may be had. */
export function isSilence(error: unknown): boolean {
    return error instanceof ScanwireError && silences.has(error);
}

/** Serialisation failure and deadlock. The others of class 40 may have been committed, or would fail again. */
const ROLLED_BACK = /^40001$|^40P01$/;

/** What the server says of a statement, in a session that goes on: class 40, resources, a lock or statement time-out, a system error. */
const SESSION_GOES_ON = /^(?:40|53|58)...$|^55P03$|^57014$/;

/** Whether a connection on which this came up is silent, lost, or leads to a server that is of no use. */
export function losesConnection(error: unknown): boolean {
    return isSilence(error) || (isCaused(error) && error.code === 'UNAVAILABLE' && !SESSION_GOES_ON.test(causeCode(error)));
}

/** What we find ourselves in what the database answers, for example that rows are lost, has no cause. */
function isCaused(error: unknown): error is ScanwireError {
    return error instanceof ScanwireError && error.cause !== undefined;
}

/** Whether the statement was rolled back for the sake of another one. */
export function isRolledBack(error: unknown): boolean {
    return ROLLED_BACK.test(causeCode(error));
}

/** Whether a lock did not come in time, or only at the cost of a deadlock. */
export function isBehindOthers(error: unknown): boolean {
    return /^(?:55P03|40P01)$/.test(causeCode(error));
}

function causeCode(error: unknown): string {
    return sqlState((error as Error | null)?.cause);
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

/** What the server says of each statement after one that has failed. */
export const IN_FAILED_TRANSACTION = '25P02';

/**
 * Of a transaction whose function has resolved although a statement had failed.
 *
 * @param failed Why the last one that had a reason of its own did.
 */
export function rolledBack(failed: unknown): ScanwireError {
    const code = sqlState(failed);
    const message = `The transaction was rolled back, since one of its statements had failed${code === '' ? '' : ` (${code})`}: nothing of it is stored`;
    const remedy = 'let its error reject the transaction, or set a savepoint before it and roll back to that';
    return new ScanwireError('MISCONFIGURED', `${message}; ${remedy}`, { cause: failed });
}

/** What a deadlock, a conflict, a lock that is held, a time-out or a file of the statement's own comes to. */
const OF_STATEMENT = /^40...$|^55P03$|^57014$|^58P01$/;

/** Where in the server a number of parameters is refused that is not the statement's; other violations of the protocol (08P01) are a pooler's. */
const BINDING = 'exec_bind_message';

/**
 * The error of a statement of the application's own: as the database said it, for the application knows what its statements mean. But
 * `UNAVAILABLE` where the database cannot be used now, whatever the statement was.
 */
export function applicationError(error: unknown): unknown {
    const said = storeError(error);
    const isAway = said instanceof ScanwireError && said.code === 'UNAVAILABLE';
    const isOfStatement = OF_STATEMENT.test(sqlState(error)) || (error as { readonly routine?: unknown } | null)?.routine === BINDING;
    return isAway && !isOfStatement ? said : error;
}

/** The error of a statement of ours in a transaction of the application: as {@link storeError}, but that it must be run again is said to who can do so. */
export function joinedError(error: unknown): unknown {
    return sqlState(error).startsWith('40') ? error : storeError(error);
}

/** What is no fault of the statement but of what was given for it, or of how the database was set up, and stays so until somebody does something. */
function refusal(code: string, cause: Error): ScanwireError | null {
    // The schemas refuse it first, and name the field.
    if (UNSTORABLE_TEXT.has(code)) {
        return new ScanwireError('INVALID_INPUT', `A text ${UNSTORABLE} (${code})`, { cause });
    }
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

/** Bytes that are no character of the database's encoding, as NUL is none; an escape of a JSON text that stands for none. */
const UNSTORABLE_TEXT = new Set(['22021', '22P05']);

/** A schema, a table or a function is not there. */
const ABSENT = new Set(['3F000', '42P01', '42883']);

/** The commonest causes in words: the server's own may quote what was sent. */
const CAUSES: ReadonlyMap<string, string> = new Map([
    ['ECONNREFUSED', 'nothing listens at its address'],
    ['ENOTFOUND', 'its host name is unknown'],
    ['ETIMEDOUT', 'its host does not answer'],
    ['3D000', 'the server has no database of this name'],
    ['28P01', 'user name or password is wrong'],
    ['28000', 'the server does not let this user in'],
    ['57014', 'it has ended a statement that took too long'],
    ['57P01', 'the server has ended the connection'],
    ['53300', 'the server has no connection left'],
    ['25006', 'the server takes no writes, as a standby after a fail-over: the address of the pool must lead to the primary'],
]);

/** What a code means, as a note behind a sentence: `: nothing listens at its address (ECONNREFUSED)`. */
export function why(code: string): string {
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

/** Of a session whose times node-postgres does not read: it takes most of them for none. */
export function unreadableTimes(): ScanwireError {
    const message =
        'The database writes times in a style of its own: DateStyle must begin with ISO for the role, the database and every session';
    return new ScanwireError('MISCONFIGURED', message);
}
