import { type BackendFactory, type ConnectionOptions, createPostgresBackend, runMigrations } from 'bullmq';
import Joi from 'joi';
import { checked } from '../../lib/checked.ts';
import { ScanwireError } from '../../lib/scanwire-error.ts';
import type { DeliveryQueue } from '../../lib/webhooks/queue.ts';
import type { BullmqPool } from './bullmq-pool.ts';
import { type BullmqServer, bullmqQueue } from './bullmq-queue.ts';
import { type QueuePool, queuePool } from './queue-pool.ts';

export interface PostgresQueueOptions {
    /**
     * A `pg.Pool`, or a port with one session such as the embedded database. A `pg.Pool` is not used itself: the queue makes
     * a small one of its own with the same settings.
     */
    readonly pool: BullmqPool;
    /** How many connections of its own the queue keeps, and one more for each worker. 4 by default. */
    readonly connections?: number;
}

const optionsSchema = Joi.object<PostgresQueueOptions>({
    pool: Joi.object({ query: Joi.function().required(), connect: Joi.function().required() }).unknown().required(),
    connections: Joi.number().integer().min(1).default(4),
});

const SCHEMA = 'bullmq';

/**
 * The delivery queue on PostgreSQL 13 or later, in the schema `bullmq`, which `ready()` makes and migrates. BullMQ's
 * PostgreSQL backend is young and several times slower than Redis; it saves running one.
 *
 * @throws ScanwireError `MISCONFIGURED` for options that cannot work.
 */
export function postgresQueue(options: PostgresQueueOptions): DeliveryQueue {
    const { connections = 4 } = checked(optionsSchema, options, { subject: 'postgresQueue options', code: 'MISCONFIGURED' });
    return bullmqQueue(postgresServer(queuePool(options.pool, SCHEMA, connections)));
}

function postgresServer(pool: QueuePool): BullmqServer {
    const connection = { connection: pool as unknown as ConnectionOptions };
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
            return connection;
        },

        async worker() {
            pool.reserve(1);
            return { ...connection, stopWaiting: () => {}, release: () => pool.reserve(-1) };
        },

        close: () => pool.end(),
    };
}

async function migrate(pool: QueuePool): Promise<void> {
    const client = await pool.connect();
    try {
        await runMigrations(client, SCHEMA);
        await pool.settle(client);
        client.release();
    } catch (error) {
        client.release(true);
        throw error;
    }
}

/** Answers of the server that trying again does not change: no such user, password or database, no right, too old or too new. */
const HOPELESS = /^(28|3D|42501)/;

function migrationError(cause: unknown): ScanwireError {
    const { code, name, message } = cause as { code?: string; name?: string; message?: string };
    if (HOPELESS.test(code ?? '') || /^(UnsupportedPostgresVersion|SchemaVersionMismatch)Error$/.test(name ?? '')) {
        return new ScanwireError('MISCONFIGURED', `PostgreSQL cannot hold the queue: ${message}`, { cause });
    }

    return new ScanwireError('UNAVAILABLE', `PostgreSQL cannot be reached: ${code ?? message}`, { cause });
}
