import { type BackendFactory, type ConnectionOptions, createPostgresBackend, runMigrations } from 'bullmq';
import Joi from 'joi';
import { checked } from '../../lib/checked.ts';
import { ScanwireError } from '../../lib/scanwire-error.ts';
import type { DeliveryQueue } from '../../lib/webhooks/queue.ts';
import { bullmqQueue } from './bullmq-queue.ts';
import type { BullmqServer } from './bullmq-server.ts';
import { assertLooksInto, type PoolLike, type QueuePool, queuePool } from './queue-pool.ts';

export interface PostgresQueueOptions {
    /** A `pg.Pool` or the embedded database. The queue makes a pool of its own with the same settings; this one stays open. */
    readonly pool: PoolLike;
    /** How many connections of its own the queue opens at most, and one more for each worker. 4 by default. */
    readonly connections?: number;
}

const optionsSchema = Joi.object<PostgresQueueOptions>({
    pool: Joi.object({ options: Joi.object().required(), Client: Joi.function().required() })
        .unknown()
        .required()
        .messages({ 'any.required': '{{#label}} must be a pool of node-postgres' }),
    connections: Joi.number().integer().min(1).default(4),
});

const SCHEMA = 'bullmq';

/**
 * The delivery queue on PostgreSQL 13 or later, in the schema `bullmq`, which `ready()` makes and migrates. It saves running
 * a Redis; BullMQ's PostgreSQL backend is younger and several times slower. It listens for notifications, so a connection
 * pooler in between must pool sessions, not transactions.
 *
 * @throws ScanwireError `MISCONFIGURED` for options that cannot work.
 */
export function postgresQueue(options: PostgresQueueOptions): DeliveryQueue {
    const { connections = 4 } = checked(optionsSchema, options, { subject: 'postgresQueue options', code: 'MISCONFIGURED' });
    return bullmqQueue(postgresServer(queuePool(options.pool, SCHEMA, connections)));
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
        backend: createPostgresBackend as BackendFactory,
        ready,

        async producer() {
            await ready();
            return { connection };
        },

        async worker() {
            pool.reserve(1);
            return { connection, stopWaiting: () => {}, release: () => pool.reserve(-1) };
        },

        close: () => pool.end(),
    };
}

async function migrate(pool: QueuePool): Promise<void> {
    const client = await pool.connect();
    try {
        await runMigrations(client, SCHEMA);
        await assertLooksInto(client, SCHEMA);
        client.release();
    } catch (error) {
        client.release(true);
        throw error;
    }
}

/** Answers that trying again does not change: no such user, password or database, a right that is missing. */
const HOPELESS_CODE = /^(28|3D|42501)/;
const HOPELESS_NAME = /^(UnsupportedPostgresVersion|SchemaVersionMismatch)Error$/;

function migrationError(cause: unknown): ScanwireError {
    if (cause instanceof ScanwireError) {
        return cause;
    }

    const { code = '', name = '', message = '' } = cause as { code?: string; name?: string; message?: string };
    return HOPELESS_CODE.test(code) || HOPELESS_NAME.test(name)
        ? new ScanwireError('MISCONFIGURED', `PostgreSQL cannot hold the queue: ${message}`, { cause })
        : new ScanwireError('UNAVAILABLE', `PostgreSQL cannot be reached: ${code || message}`, { cause });
}
