import pg from 'pg';
import { redisQueue } from 'scanwire/bullmq';
import { keyRing } from 'scanwire/keys';
import { migrate, postgresStores } from 'scanwire/postgres';
import { egressGuard, httpSender, type Webhooks, webhooks } from 'scanwire/webhooks';
import { stopSignal } from '../../cli/stop-signal.ts';
import type { Role } from '../../lib/webhooks/deployment-settings.ts';
import { importFrom } from './other-version.ts';

/** What a process of the deployment is told by its environment, `CAMPAIGN`, as JSON. */
export interface EngineSettings {
    readonly databaseUrl: string;
    readonly redisUrl: string;
    /** Base64. */
    readonly sealingKey: string;
    /** Absent in the campaign's own process, which sends nothing. */
    readonly nameServer?: string;
    /** Address of the receivers, in place of a name server: not every version can be told one. */
    readonly receiver?: string;
    /** Where a host notes what was accepted. */
    readonly accepted: string;
    /** Whether hosts publish under order keys; not every version knows any. */
    readonly ordered: boolean;
}

/** The webhook exporter of one process. */
export interface Engine {
    readonly webhooks: Webhooks;
    readonly pool: pg.Pool;
    close(): Promise<void>;
}

/** For how many milliseconds the path of a process to its database may be silent before a statement of the host's own fails. */
export const HOST_PATIENCE = 10_000;

const CONCURRENCY = 100;

/** What an application imports of scanwire. */
export type Version = Pick<typeof import('scanwire/bullmq'), 'redisQueue'> &
    Pick<typeof import('scanwire/keys'), 'keyRing'> &
    Pick<typeof import('scanwire/postgres'), 'migrate' | 'postgresStores'> &
    Pick<typeof import('scanwire/webhooks'), 'egressGuard' | 'httpSender' | 'webhooks'>;

const THIS_VERSION: Version = { redisQueue, keyRing, migrate, postgresStores, egressGuard, httpSender, webhooks };

/** The version in a compiled checkout. */
export async function versionIn(checkout: string): Promise<Version> {
    const modules = ['bullmq', 'keys', 'postgres', 'webhooks'].map((name) => importFrom<Partial<Version>>(checkout, `scanwire/${name}`));
    return Object.assign({}, ...(await Promise.all(modules)));
}

/** Put together as an application does it, with the defaults of everything. */
export function engine(
    { databaseUrl, redisUrl, sealingKey, nameServer, receiver }: EngineSettings,
    onError: (error: Error) => void,
    { redisQueue, keyRing, postgresStores, egressGuard, httpSender, webhooks }: Version = THIS_VERSION,
    role: Role = 'host',
): Engine {
    const pool = new pg.Pool({ connectionString: databaseUrl, max: 20, connectionTimeoutMillis: 5_000 });
    pool.on('error', onError);
    const queue = redisQueue({ url: redisUrl });
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const own = webhooks({
        ...postgresStores({ pool }).webhooks,
        queue,
        keyRing: keyRing({ current: 'k', keys: { k: Buffer.from(sealingKey, 'base64') } }),
        guard,
        sender: httpSender({
            guard,
            ...(receiver !== undefined
                ? { lookup: (_name, _options, done) => done(null, [{ address: receiver }]) }
                : nameServer !== undefined && { nameServers: [nameServer] }),
        }),
        onError,
        role,
    });
    return {
        webhooks: own,
        pool,
        async close() {
            await own.close();
            await queue.close();
            await pool.end();
        },
    };
}

/**
 * The life of a process that hands out and sends, until SIGTERM. A worker that is there before any host has started ends, and is started again.
 *
 * @param onMessage Called with what the campaign asks, from the moment that it is ready.
 * @param finish Called at SIGTERM, before all is closed.
 */
export async function runEngine({
    role,
    onMessage = () => {},
    finish = async () => {},
}: {
    readonly role: Role;
    readonly onMessage?: (message: unknown, engine: Engine) => void;
    readonly finish?: () => Promise<void>;
}): Promise<void> {
    const stopped = stopSignal();
    // The campaign has gone, and nobody else would end this process.
    const orphaned = (): never => process.exit(1);
    process.once('disconnect', orphaned);
    const onError = (error: Error): void => void process.stderr.write(`${new Date().toISOString()} ${error.stack}\n`);
    const own = engine(engineSettings(), onError, THIS_VERSION, role);
    try {
        await own.webhooks.start();
        await own.webhooks.work(['default'], { concurrency: CONCURRENCY });
        process.on('message', (message) => onMessage(message, own));
        process.send?.('ready');
        await stopped;
        await finish();
    } finally {
        await own.close();
        process.off('disconnect', orphaned);
        process.disconnect();
    }
}

/** @throws Error outside of a campaign. */
export function engineSettings(): EngineSettings {
    return JSON.parse(process.env.CAMPAIGN ?? 'null') ?? fail();
}

function fail(): never {
    throw new Error('This is a process of a fault campaign: run it by "npm run faults"');
}
