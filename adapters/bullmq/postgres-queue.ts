import { type BackendFactory, type ConnectionOptions, createPostgresBackend, runMigrations } from 'bullmq';
import Joi from 'joi';
import type { Pool, PoolClient, QueryResult } from 'pg';
import { ScanwireError } from '../../lib/errors.ts';
import { checked } from '../../lib/schema-validation.ts';
import type { DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { sqlState, why } from '../postgres/database-errors.ts';
import { assertPrepared, type HostPool, isClient, isHostPool, ownPool } from '../postgres/own-pool.ts';
import { connectionLosses } from './connection-losses.ts';
import { bullmqQueue } from './queue.ts';
import type { BullmqServer } from './worker.ts';

/** Where the queue is, and how many sessions it may use. */
export interface PostgresQueueOptions {
    /** A `pg.Pool` or the embedded database. The queue makes a pool of its own with the same settings; this one stays open. */
    readonly pool: HostPool;
    /** How many connections of its own the queue opens at most, and one more for each worker. 4 by default. */
    readonly connections?: number;
}

const NO_POOL = '{{#label}} must be a pool of node-postgres or the embedded database, and no client';

const asPool: Joi.CustomValidator<unknown> = (given, helpers) =>
    typeof given === 'object' && given !== null && isHostPool(given) && !isClient(given) ? given : helpers.error('any.invalid');

const optionsSchema = Joi.object<PostgresQueueOptions>({
    pool: Joi.any().custom(asPool).required().messages({ 'any.required': NO_POOL, 'any.invalid': NO_POOL }),
    connections: Joi.number().integer().min(1).default(4),
}).required();

/** The statement for many takes twenty times as long as that for one. */
const FEW = 3;

/** Where BullMQ's tables are. */
const SCHEMA = 'bullmq';

/** What BullMQ lists of those that wait begins with the last, so this asks its table, in the order in which it hands them out. */
const FIRST_WAITING = "SELECT id FROM job WHERE queue = $1 AND state = 'waiting' ORDER BY priority, seq LIMIT 1";

/**
 * The delivery queue on PostgreSQL 13 or later, in the schema `bullmq`, which `ready()` makes and migrates. It saves running
 * a Redis; BullMQ's PostgreSQL backend is younger and several times slower. It listens for notifications, so a connection
 * pooler in between must pool sessions, not transactions.
 *
 * @throws ScanwireError `MISCONFIGURED` for options that cannot work.
 */
export function postgresQueue(options: PostgresQueueOptions): DeliveryQueue {
    const { connections } = checked(optionsSchema, options, {
        subject: 'postgresQueue options',
        code: 'MISCONFIGURED',
    }) as Required<PostgresQueueOptions>;
    return bullmqQueue(postgresServer(queuePool(options.pool, connections)));
}

function postgresServer(pool: QueuePool): BullmqServer {
    const connection = pool as unknown as ConnectionOptions;
    let migrated: Promise<void> | undefined;

    /** Once it has succeeded; a failure is tried again. */
    function ready(): Promise<void> {
        migrated ??= migrate(pool).catch((error: unknown) => {
            migrated = undefined;
            throw migrationError(error);
        });
        return migrated;
    }

    return {
        name: 'PostgreSQL',
        few: FEW,
        backend: createPostgresBackend as BackendFactory,
        // The jobs are beside the rows of the one deployment that the database has.
        address: () => ({ queue: 'PostgreSQL' }),
        ready,

        async producer() {
            await ready();
            return { connection };
        },

        async firstWaiting(queue) {
            const { rows } = await pool.query(FIRST_WAITING, [queue]);
            return rows[0]?.id ?? null;
        },

        async worker() {
            pool.reserve(1);
            return { connection, isSteady: pool.isSteady, stopWaiting: () => {}, release: () => pool.reserve(-1) };
        },

        refusal: lackingRight,

        close: () => pool.end(),
    };
}

async function migrate(pool: QueuePool): Promise<void> {
    const client = await pool.connect();
    try {
        await runMigrations(client, SCHEMA);
        await assertPrepared(client, 'the queue', `current_schema() = '${SCHEMA}'`);
        client.release();
    } catch (error) {
        client.release(true);
        throw error;
    }
}

/** Answers that trying again does not change: no such user, password or database. */
const HOPELESS_CODE = /^(28|3D)/;
const HOPELESS_NAME = /^(UnsupportedPostgresVersion|SchemaVersionMismatch)Error$/;

function migrationError(cause: unknown): ScanwireError {
    if (cause instanceof ScanwireError) {
        return cause;
    }

    const { code = '', name = '', message = '' } = cause as { code?: string; name?: string; message?: string };
    const lacking = lackingRight(cause);
    if (lacking !== null) {
        return lacking;
    }
    return HOPELESS_CODE.test(code) || HOPELESS_NAME.test(name)
        ? new ScanwireError('MISCONFIGURED', `PostgreSQL cannot hold the queue: ${message}`, { cause })
        : new ScanwireError('UNAVAILABLE', `PostgreSQL cannot be reached${code === '' ? `: ${message}` : why(code)}`, { cause });
}

/** A right that the role lacks; the schema is none where it may not even be used. */
const NO_RIGHT = /^(?:42501|3F000)$/;

/** BullMQ looks at its schema at each start as if it were to be migrated, which only an owner may. */
function lackingRight(cause: unknown): ScanwireError | null {
    const code = sqlState(cause);
    const rights = `create on the database, and to be the owner of the schema ${SCHEMA} and of its tables and functions, once they are there`;
    return NO_RIGHT.test(code)
        ? new ScanwireError('MISCONFIGURED', `The role of the pool lacks a right that the queue needs: ${rights} (${code})`, { cause })
        : null;
}

/**
 * The pool that BullMQ works on. Its statements name no schema, so each session of this pool looks into the queue's own; and they are written for read
 * committed, whatever the database, the role or the application has set: else those that meet fail, and jobs are not added.
 */
interface QueuePool extends Pick<Pool, 'connect' | 'end'> {
    query(text: string, values?: unknown[]): Promise<QueryResult>;
    readonly options: { readonly keepAlive: true };
    on(): QueuePool;
    removeAllListeners(): QueuePool;
    /** Makes room for so many more sessions (fewer when negative): a worker keeps one for listening. */
    reserve(sessions: number): void;
    /** As that of the connection of a worker: the workers share those of the pool. */
    isSteady(): boolean;
}

/** A pool of our own needs no change of the application's `search_path` around each statement. */
function queuePool(application: HostPool, connections: number): QueuePool {
    const { isSteady, watch } = watchedClients();
    const pool = ownPool(application, connections, (client) => {
        watch(client);
        return client.query(`SET search_path TO ${SCHEMA}; SET default_transaction_isolation TO 'read committed'`);
    });
    const facade: QueuePool = {
        options: { keepAlive: true },
        query: (text, values) => pool.query(text, values),
        connect: async () => droppedWhenSilent(await pool.connect()),
        end: () => pool.end(),
        isSteady,
        // BullMQ adds a listener for each queue and never takes it away.
        on: () => facade,
        removeAllListeners: () => facade,

        reserve(sessions) {
            pool.options.max += sessions;
        },
    };
    return facade;
}

/** Notes which clients are lost, and the first that is made after one was. */
function watchedClients(): { isSteady(): boolean; watch(client: PoolClient): void } {
    const { note, isSteady } = connectionLosses();
    let isLost = false;
    return {
        isSteady,

        watch(client) {
            if (isLost) {
                isLost = false;
                note();
            }
            // One that the pool has ended says nothing.
            client.on('error', () => {
                isLost = true;
                note();
            });
        },
    };
}

/** A client is given out again and again. */
const watched = new WeakSet<PoolClient>();

/**
 * BullMQ listens on one client until that emits an error. A statement that is never answered emits none, so BullMQ would ask the same
 * silent connection for ever, and its worker take no job any more. Each client of the pool is watched, so that the error is always heard.
 */
function droppedWhenSilent(client: PoolClient): PoolClient {
    if (watched.has(client)) {
        return client;
    }
    watched.add(client);
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    const dropping = (error: Error): never => {
        if (error.message === 'Query read timeout') {
            client.emit('error', error);
        }
        throw error;
    };
    client.query = ((...args: unknown[]) => {
        const result = query(...args);
        return result instanceof Promise ? result.catch(dropping) : result;
    }) as PoolClient['query'];
    return client;
}
