import { randomUUID } from 'node:crypto';
import { type BackendFactory, createRedisBackend } from 'bullmq';
import type { Redis } from 'ioredis';
import Joi from 'joi';
import { ScanwireError } from '../../lib/errors.ts';
import { processWarning } from '../../lib/process-warning.ts';
import { checked, isObject } from '../../lib/schema-validation.ts';
import type { DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { connectionLosses } from './connection-losses.ts';
import { bullmqQueue } from './queue.ts';
import {
    type ConnectionRole,
    connect,
    isCluster,
    openRedis,
    PRODUCER,
    type RedisAddress,
    type RedisClient,
    redisUrlProblem,
    retryStrategy,
    WORKER,
} from './redis-client.ts';
import type { BullmqServer, BullmqWorkerConnection } from './worker.ts';

/** Exactly one of `url` and `connection`. */
export interface RedisQueueOptions extends RedisAddress {
    /**
     * What the names of all keys begin with: letters, digits, `-`, `_`, and in braces also `:`; a Redis Cluster needs the braces. By default
     * `{scanwire:<id of the deployment>}`, so that deployments on one Redis never see each other's jobs.
     */
    readonly prefix?: string;
    /** Told about settings of the server that may lose jobs or that cannot be read. `process.emitWarning` by default. */
    readonly onWarning?: (message: string) => void;
}

const optionsSchema = Joi.object<RedisQueueOptions>({
    url: Joi.string().custom((url: string, helpers) => {
        const problem = redisUrlProblem(url);
        return problem === null ? url : helpers.message({ custom: `{{#label}} ${problem}` });
    }),
    // As it is: a client is an instance of a class, which a schema of objects would copy.
    connection: Joi.any().custom((connection: unknown, helpers) =>
        isObject(connection)
            ? connection
            : helpers.message({ custom: '{{#label}} must be a client of ioredis, or the options to make one' }),
    ),
    prefix: Joi.string()
        .pattern(/^([A-Za-z0-9_-]+|\{[A-Za-z0-9_:-]+\})$/)
        .messages({ 'string.pattern.base': '{{#label}} must be letters, digits, "-" and "_", and in braces also ":"' }),
    onWarning: Joi.function().default(() => processWarning),
})
    .xor('url', 'connection')
    .required();

/**
 * The delivery queue on Redis 6.2 or later. The server must never evict keys (`maxmemory-policy noeviction`) and should
 * write an append-only file.
 *
 * @throws ScanwireError `MISCONFIGURED` for options that cannot work.
 */
export function redisQueue(options: RedisQueueOptions): DeliveryQueue {
    const { prefix, onWarning, ...address } = checked(optionsSchema, options, {
        subject: 'redisQueue options',
        code: 'MISCONFIGURED',
    }) as RedisQueueOptions & Required<Pick<RedisQueueOptions, 'onWarning'>>;
    return bullmqQueue(redisServer((role) => openRedis(address, role), prefix, onWarning));
}

function redisServer(
    open: (role: ConnectionRole) => Promise<RedisClient>,
    given: string | undefined,
    onWarning: (message: string) => void,
): BullmqServer {
    // Of a queue that belongs to no deployment.
    let prefix = given ?? '{scanwire}';
    let producer: Promise<RedisClient> | undefined;
    let connecting: Promise<void> | undefined;
    let ready: RedisClient | undefined;
    const losses = lossDetector(connected, () => `${prefix}:contents`);

    async function openProducer(): Promise<RedisClient> {
        const redis = await open(PRODUCER);
        redis.on('close', losses.noteAway);
        // A cluster goes on without one of its nodes.
        redis.on('-node', losses.noteAway);
        return redis;
    }

    async function connected(): Promise<RedisClient> {
        producer ??= openProducer();
        const redis = await producer;
        if (redis.status === 'wait' || redis.status === 'end') {
            connecting = connect(redis)
                .catch((error: unknown) => {
                    // A client that was told to give up while it waited to reconnect stays in that state for ever.
                    producer = undefined;
                    throw error;
                })
                .finally(() => {
                    connecting = undefined;
                });
        }

        await connecting;
        if (redis.status !== 'ready') {
            throw new ScanwireError('UNAVAILABLE', 'Redis cannot be reached: the connection is being made again');
        }

        ready = redis;
        return redis;
    }

    return {
        name: 'Redis',
        // Several share one write to the socket.
        few: 1,
        backend: createRedisBackend as BackendFactory,

        address(deployment) {
            prefix = given ?? `{scanwire:${deployment}}`;
            return { queue: 'Redis', prefix };
        },

        async ready() {
            const redis = await connected();
            await assertHasDatabase(redis);
            await assertKeepsJobs(redis, onWarning);
        },

        producer: async () => ({ connection: await connected(), prefix }),

        gatherWrites() {
            // The nodes of a cluster have a connection each.
            if (ready !== undefined && !isCluster(ready)) {
                gatherWritesOf(ready);
            }
        },

        async firstWaiting(_queue, backend) {
            const [jobs] = await backend.getRanges(['waiting'], 0, 0, true);
            return jobs?.[0] ?? null;
        },

        hasLostJobs: losses.hasLostJobs,

        async worker() {
            const connection = await workerConnection(open);
            return { ...connection, prefix };
        },

        async close() {
            const redis = await producer?.catch(() => undefined);
            redis?.disconnect();
        },
    };
}

/** Jobs for several queues are several pipelines, which share one write to the socket so. */
function gatherWritesOf({ stream }: Redis): void {
    stream?.cork();
    setImmediate(() => stream?.uncork());
}

interface LossDetector {
    hasLostJobs(): Promise<boolean>;
    /** The server was away: it may be back before anybody asks. */
    noteAway(): void;
}

/**
 * Finds that the server was emptied, or may have come back with less than it had: by a key that whoever finds it missing writes again.
 */
function lossDetector(connected: () => Promise<RedisClient>, keyName: () => string): LossDetector {
    let known: string | null = null;
    let wasAway = false;

    return {
        noteAway() {
            wasAway = true;
        },

        async hasLostJobs() {
            try {
                const redis = await connected();
                const key = keyName();
                const wasEmpty = (await redis.set(key, randomUUID(), 'NX')) !== null;
                const contents = await redis.get(key);
                const lost = wasAway || wasEmpty || (known !== null && contents !== known);
                known = contents;
                wasAway = false;
                return lost;
            } catch (error) {
                wasAway = true;
                throw error instanceof ScanwireError ? error : unreachable(error);
            }
        },
    };
}

/**
 * BullMQ copies the connection it is given for the commands that block, and waits for ever for a copy that is just about to
 * reconnect to close. So the copies are noted, and told before the end to give up at their next failure.
 */
async function workerConnection(
    open: (role: ConnectionRole) => Promise<RedisClient>,
): Promise<Pick<BullmqWorkerConnection, 'connection' | 'isSteady' | 'stopWaiting' | 'release'>> {
    let waits = true;
    const losses = connectionLosses();
    const redis = await open({ ...WORKER, retryStrategy: (times) => (waits ? retryStrategy(times) : null) });
    const clients = [redis];
    const watch = (client: RedisClient): void => {
        client.on('close', () => {
            // What closes once nothing is waited for is closed by us, and what comes meanwhile is left with its claim.
            if (waits) {
                losses.note();
                client.once('ready', losses.note);
            }
        });
    };
    watch(redis);
    const duplicate = redis.duplicate.bind(redis) as (...options: never[]) => RedisClient;
    redis.duplicate = ((...options: never[]) => {
        const copy = duplicate(...options);
        clients.push(copy);
        watch(copy);
        return copy;
    }) as RedisClient['duplicate'];

    return {
        connection: redis,
        isSteady: losses.isSteady,

        stopWaiting() {
            waits = false;
            for (const client of clients.filter(({ status }) => status === 'reconnecting')) {
                client.connect().catch(() => {});
            }
        },

        release() {
            for (const client of clients) {
                client.disconnect();
            }
        },
    };
}

/**
 * Refuses a Redis that evicts keys: it would drop jobs without an error, or hand them out empty. Warns where jobs would not
 * survive a restart of the server, and where the server does not tell.
 *
 * @throws ScanwireError `MISCONFIGURED`, `UNAVAILABLE`.
 */
async function assertKeepsJobs(redis: RedisClient, warn: (message: string) => void): Promise<void> {
    for (const server of isCluster(redis) ? redis.nodes('master') : [redis]) {
        await assertServerKeepsJobs(server, warn);
    }
}

/** Where the database of a client does not exist, the client goes on in the first one, with what others have there. */
async function assertHasDatabase(redis: RedisClient): Promise<void> {
    const database = isCluster(redis) ? 0 : (redis.options.db ?? 0);
    if (database !== 0) {
        await redis.select(database).catch((cause: Error) => {
            throw NO_DATABASE.some((text) => cause.message.includes(text)) ? noDatabase(cause) : notSelected(cause);
        });
    }
}

/** What servers say of a database that they do not have. Whatever else they say, as while they load or run a script, passes. */
const NO_DATABASE = ['out of range', 'invalid DB index'];

function noDatabase(cause: Error): ScanwireError {
    const message = 'Redis does not open the database that url or connection names: it must be one that the server has';
    return new ScanwireError('MISCONFIGURED', message, { field: 'url', cause });
}

function notSelected(cause: Error): ScanwireError {
    return isReply(cause)
        ? new ScanwireError('UNAVAILABLE', 'Redis does not open the database that url or connection names now', { cause })
        : unreachable(cause);
}

async function assertServerKeepsJobs(redis: Redis, warn: (message: string) => void): Promise<void> {
    const [, configured] = ((await answerTo(redis.config('GET', 'maxmemory-policy'))) ?? []) as string[];
    const policy = configured ?? field(await answerTo(redis.info('memory')), 'maxmemory_policy');
    if (policy === null) {
        warn('Redis does not tell its maxmemory-policy: make sure that it is noeviction, or jobs may be lost');
    } else if (policy !== 'noeviction') {
        throw new ScanwireError('MISCONFIGURED', `Redis has maxmemory-policy ${policy}: it must be noeviction, or jobs are lost`);
    }

    if (field(await answerTo(redis.info('persistence')), 'aof_enabled') === '0') {
        warn('Redis writes no append-only file (appendonly no): waiting jobs are added again after a restart of Redis, but later');
    }
}

/** What the server answers; null where the provider forbids the question. */
async function answerTo<T>(question: Promise<T>): Promise<T | null> {
    try {
        return await question;
    } catch (error) {
        if (isReply(error)) {
            return null;
        }

        throw unreachable(error);
    }
}

/** Whether it is the server that answers with an error. */
function isReply(error: unknown): boolean {
    return error instanceof Error && error.name === 'ReplyError';
}

function unreachable(cause: unknown): ScanwireError {
    return new ScanwireError('UNAVAILABLE', 'Redis cannot be reached', { cause });
}

function field(text: string | null, name: string): string | null {
    const line = text?.split(/\r?\n/).find((line) => line.startsWith(`${name}:`));
    return line?.slice(name.length + 1) ?? null;
}
