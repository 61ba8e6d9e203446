import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { ScanwireError } from '../../lib/errors.ts';
import { optionalPackage } from '../../lib/optional-packages.ts';
import { within } from '../../lib/within.ts';

/** A client of ioredis: of one server, which Sentinels may name, or of a cluster. */
export type RedisClient = Redis | Cluster;

/** Where connections go: exactly one of the two. */
export interface RedisAddress {
    /**
     * `redis://` or `rediss://` (TLS), with user, password and database as needed. `redis+sentinel://host:port,host:port/name/database` asks
     * Sentinels for the server of that name; `redis+cluster://host:port,host:port` is a cluster; with `rediss+` either over TLS, Sentinels
     * included. User and password of the servers stand before the first host, the Sentinels' own in `?sentinelPassword=`.
     */
    readonly url?: string;
    /** A client of the application, whose connections go where those of the queue are to go, or the options to make one; it stays open. */
    readonly connection?: RedisClient | RedisOptions;
}

/** How long a connection may take to be made, in milliseconds. */
export const CONNECT_TIMEOUT = 5_000;

/**
 * How long a server may send nothing while it owes an answer, in milliseconds: then the connection is made again. BullMQ has a worker's
 * connection wait for a job for 10 s at most.
 */
const SILENCE_TIMEOUT = 15_000;

/** How long a Sentinel may take to name the server, in milliseconds: then the next one is asked. */
const SENTINEL_TIMEOUT = 5_000;

/** Milliseconds before so many-th try to connect again: at most a second. */
export const retryStrategy = (times: number): number => Math.min(1_000, 50 * times);

/**
 * A connection that has stayed with a server which a fail-over has made a replica is made again: by itself it would never lead to the new
 * master. What the replica refused is sent again where commands wait for a connection.
 */
const reconnectOnError = ({ message }: Error): 2 | false => (message.includes('READONLY') ? 2 : false);

/** What a connection is for. */
export type ConnectionRole = RedisOptions & { readonly replyMapping: 'legacy' };

/** Replaces what an application's client may be set to. BullMQ has prefixes of its own and reads replies in the old format. */
const COMMON = {
    connectTimeout: CONNECT_TIMEOUT,
    socketTimeout: SILENCE_TIMEOUT,
    sentinelCommandTimeout: SENTINEL_TIMEOUT,
    retryStrategy,
    reconnectOnError,
    keyPrefix: '',
    replyMapping: 'legacy',
} as const;

/** Fails at once: what cannot be added now stays in its row and is added later. */
export const PRODUCER: ConnectionRole = {
    ...COMMON,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: 5_000,
    lazyConnect: true,
};

/** Waits for as long as the server is away. */
export const WORKER: ConnectionRole = { ...COMMON, maxRetriesPerRequest: null };

/** @throws ScanwireError `MISCONFIGURED` without ioredis. */
export async function openRedis({ url = '', connection }: RedisAddress, role: ConnectionRole): Promise<RedisClient> {
    const redis = isClient(connection) ? likeClient(connection, role) : await newRedis(connection ?? url, role);
    // Without a listener a lost connection would end the process. Whoever needs the connection learns of it by itself.
    redis.on('error', () => {});
    return redis;
}

function isClient(connection: RedisAddress['connection']): connection is RedisClient {
    return typeof (connection as Partial<RedisClient> | undefined)?.duplicate === 'function';
}

/** Whether it is one of a cluster. */
export function isCluster(client: RedisClient): client is Cluster {
    return client.isCluster;
}

function likeClient(client: RedisClient, role: ConnectionRole): RedisClient {
    return isCluster(client) ? client.duplicate([], clusterOptions(role)) : client.duplicate(withSentinels(role));
}

async function newRedis(address: string | RedisOptions, role: ConnectionRole): Promise<RedisClient> {
    const { Cluster, Redis } = await optionalPackage('ioredis', 'A queue on Redis', () => import('ioredis'));
    if (typeof address !== 'string') {
        return new Redis({ ...address, ...withSentinels(role) });
    }

    const several = severalHosts(address);
    if (several === null) {
        return new Redis(address, role);
    }

    const { nodes, cluster, options } = several;
    return cluster
        ? new Cluster([...nodes], clusterOptions({ ...options, ...role }))
        : new Redis({ ...options, ...withSentinels(role), sentinels: [...nodes] });
}

/** A Sentinel that is away is waited for as a server is. */
function withSentinels(role: ConnectionRole): ConnectionRole {
    return { ...role, sentinelRetryStrategy: role.retryStrategy ?? retryStrategy };
}

function clusterOptions({ retryStrategy: retry = retryStrategy, enableOfflineQueue = true, lazyConnect = false, ...role }: ConnectionRole) {
    const options = { clusterRetryStrategy: retry, enableOfflineQueue, lazyConnect, redisOptions: role };
    return options satisfies ClusterOptions;
}

/** An address of several hosts, taken apart. */
interface SeveralHosts {
    readonly cluster: boolean;
    readonly nodes: readonly { readonly host: string; readonly port: number }[];
    readonly options: RedisOptions;
}

const SEVERAL_HOSTS = /^redis(s?)\+(sentinel|cluster):\/\/([^@/]*@)?([^@/?]+)(\/[^?]*)?(\?.*)?$/;

/** Null for one of a single host. */
function severalHosts(url: string): SeveralHosts | null {
    const [, tls, kind, credentials = '', hosts = '', path = '', query = ''] = SEVERAL_HOSTS.exec(url) ?? [];
    if (kind === undefined) {
        return null;
    }

    const urls = hosts.split(',').map((host) => new URL(`redis://${credentials}${host}${path}${query}`));
    const [{ username, password, pathname, searchParams }] = urls as [URL];
    const cluster = kind === 'cluster';
    const [name = '', database = '0'] = pathname.slice(1).split('/').map(decodeURIComponent);
    const sentinelPassword = searchParams.get('sentinelPassword');
    const options = {
        ...(username !== '' && { username: decodeURIComponent(username) }),
        ...(password !== '' && { password: decodeURIComponent(password) }),
        ...(tls === 's' && { tls: {}, ...(!cluster && { enableTLSForSentinelMode: true, sentinelTLS: {} }) }),
        ...(!cluster && { name, db: Number(database) }),
        ...(sentinelPassword !== null && { sentinelPassword }),
    };
    const nodes = urls.map(({ hostname, port }) => ({
        host: hostname.replace(/^\[(.*)\]$/, '$1'),
        port: Number(port) || (cluster ? 6379 : 26_379),
    }));
    return { cluster, nodes, options };
}

/** What is wrong with a URL, null when nothing is; without the URL, which may hold a password. */
export function redisUrlProblem(url: string): string | null {
    try {
        const several = severalHosts(url);
        if (several === null) {
            return /^rediss?:$/.test(new URL(url).protocol) ? null : FORMS;
        }

        const { name, db } = several.options;
        const isNamed = several.cluster || (name !== '' && Number.isInteger(db));
        return isNamed ? null : 'must name the server that the Sentinels watch: redis+sentinel://host:port,host:port/name';
    } catch {
        return FORMS;
    }
}

const FORMS = 'must be a URL that begins with redis://, rediss://, redis+sentinel:// or redis+cluster://';

/** The first connection. One that fails is given up, so that it does not keep the process alive; the next call tries again. */
export async function connect(redis: RedisClient): Promise<void> {
    let lastError: Error | undefined;
    const remember = (error: Error): void => {
        lastError = error;
    };
    redis.on('error', remember);
    try {
        const late = (): Error => new Error(`no answer within ${CONNECT_TIMEOUT} ms`);
        await within(redis.connect(), { timeout: CONNECT_TIMEOUT, late });
    } catch (error) {
        redis.disconnect();
        throw connectError(lastError ?? (error as Error));
    } finally {
        redis.off('error', remember);
    }
}

function connectError(cause: Error): ScanwireError {
    const { lastNodeError = cause } = cause as { lastNodeError?: Error };
    if (/^(WRONGPASS|NOAUTH|NOPERM)/.test(lastNodeError.message)) {
        return new ScanwireError('MISCONFIGURED', 'Redis refused the user or the password', { cause });
    }

    const reason = (lastNodeError as NodeJS.ErrnoException).code ?? lastNodeError.message;
    return new ScanwireError('UNAVAILABLE', `Redis cannot be reached: ${reason}`, { cause });
}
