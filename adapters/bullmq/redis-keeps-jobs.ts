import type { Redis } from 'ioredis';
import { ScanwireError } from '../../lib/scanwire-error.ts';

/**
 * Refuses a Redis that evicts keys: it would drop jobs without an error, or hand them out empty. Warns where jobs would not
 * survive a restart of the server, and where the server does not tell.
 *
 * @throws ScanwireError `MISCONFIGURED`, `UNAVAILABLE`.
 */
export async function assertKeepsJobs(redis: Redis, warn: (message: string) => void): Promise<void> {
    const policy = (await configuredPolicy(redis)) ?? field(await info(redis, 'memory'), 'maxmemory_policy');
    if (policy === null) {
        warn('Redis does not tell its maxmemory-policy: make sure that it is noeviction, or jobs may be lost');
    } else if (policy !== 'noeviction') {
        throw new ScanwireError('MISCONFIGURED', `Redis has maxmemory-policy ${policy}: it must be noeviction, or jobs are lost`);
    }

    if (field(await info(redis, 'persistence'), 'aof_enabled') === '0') {
        warn('Redis writes no append-only file (appendonly no): waiting jobs are added again after a restart of Redis, but later');
    }
}

/** Null where the provider forbids CONFIG. */
async function configuredPolicy(redis: Redis): Promise<string | null> {
    try {
        const [, policy] = (await redis.config('GET', 'maxmemory-policy')) as string[];
        return policy ?? null;
    } catch (error) {
        return refused(error);
    }
}

async function info(redis: Redis, section: 'memory' | 'persistence'): Promise<string> {
    try {
        return await redis.info(section);
    } catch (error) {
        return refused(error) ?? '';
    }
}

function field(text: string, name: string): string | null {
    return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(text)?.[1] ?? null;
}

/** Only an answer of the server counts as a refusal. */
function refused(error: unknown): null {
    if (error instanceof Error && error.name === 'ReplyError') {
        return null;
    }

    throw new ScanwireError('UNAVAILABLE', 'Redis cannot be reached', { cause: error });
}
