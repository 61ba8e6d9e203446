import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { migrate } from 'scanwire/postgres';
import { until } from '../../adapters/contract/assertions.ts';
import { type PostgresServer, postgresServer } from '../support/postgres-server.ts';
import { type RedisPair, redisPair } from '../support/redis-pair.ts';
import { serverPrograms } from '../support/servers.ts';
import { type Engine, engine, versionIn } from './engine.ts';
import { type Member, member, programOf, RECEIVER_NAME } from './member.ts';
import type { ReceiverOrder } from './receiver.ts';

/** All that a campaign runs on, in a folder of its own. */
export interface Deployment {
    readonly members: readonly Member[];
    readonly redis: RedisPair;
    readonly postgres: PostgresServer;
    /** The campaign's own, straight to the servers: reads, and never hands out or sends. */
    readonly admin: Engine;
    /** Ids of the exporters by their names. */
    readonly exporters: ReadonlyMap<string, string>;
    /** What the bodies of each exporter are, by its name. */
    readonly contentTypes: ReadonlyMap<string, string>;
    /** Secrets and header values, none of which may be seen anywhere. */
    readonly secrets: readonly string[];
    readonly files: { readonly accepted: string; readonly received: string };
    tellReceiver(order: ReceiverOrder): void;
    /** Ends the processes that send, by SIGTERM. */
    endMembers(): Promise<void>;
    /** Ends all that is still there. */
    close(): Promise<void>;
}

/** Names of the exporters; each has a receiver of its own. */
export const EXPORTERS = ['alpha', 'beta', 'gamma'] as const;

/** The one that gets what has an order key in that order. */
export const ORDERED: (typeof EXPORTERS)[number] = 'gamma';

/** The one that gets events in the envelope of CloudEvents. */
const FORMATTED: (typeof EXPORTERS)[number] = 'beta';

const [PLAIN, ENVELOPED] = ['application/json; charset=UTF-8', 'application/cloudevents+json; charset=utf-8'];

const ROLES: readonly Member['role'][] = ['host', 'host', 'worker', 'worker'];

/** A retry comes within seconds, and there are enough to outlast all faults. Milliseconds. */
const SCHEDULE = Array.from({ length: 30 }, (_, index) => Math.min(5_000, 1_000 + 500 * Math.floor(index / 3)));

/** What is committed survives the death of the server, not of the machine. */
const POSTGRES_SETTINGS = ['fsync=off', 'full_page_writes=off'];

/**
 * Starts everything and resolves once each exporter has sent its first `test`. Nothing stays when it fails.
 *
 * @param version A compiled checkout, of whose version schema and members are at first; this one by default.
 */
export async function deployment(folder: string, version?: string): Promise<Deployment> {
    const closers: (() => Promise<unknown>)[] = [];
    const close = async (): Promise<void> => {
        for (const closer of closers.splice(0).toReversed()) {
            await closer();
        }
    };
    try {
        return { ...(await opened(folder, closers, version)), close };
    } catch (error) {
        await close();
        throw error;
    }
}

async function opened(folder: string, closers: (() => Promise<unknown>)[], version?: string): Promise<Omit<Deployment, 'close'>> {
    const { redis, postgres } = await servers(folder, closers);
    const files = { accepted: join(folder, 'accepted.jsonl'), received: join(folder, 'received.jsonl') };
    const settings = { sealingKey: randomBytes(32).toString('base64'), accepted: files.accepted, ordered: version === undefined };
    const urls = { databaseUrl: postgres.url, redisUrl: redis.url };
    // A restart of PostgreSQL breaks its idle connections too, and a call that needs one fails by itself.
    const admin = engine({ ...urls, ...settings }, () => {});
    closers.push(() => admin.close());
    const first = version === undefined ? admin : engine({ ...urls, ...settings }, () => {}, await versionIn(version));
    await (version === undefined ? migrate : (await versionIn(version)).migrate)(admin.pool);

    const receiver = fork(programOf('receiver'), [files.received, ...EXPORTERS], { execArgv: [], env: { PATH: process.env.PATH } });
    closers.push(async () => receiver.disconnect());
    const [ports] = (await once(receiver, 'message')) as [Readonly<Record<string, number>>];
    const tellReceiver = (order: ReceiverOrder): void => void receiver.send(order);
    const { exporters, secrets } = await createExporters(first, { ports, ordered: settings.ordered, tellReceiver });

    const members = await Promise.all(ROLES.map((role, index) => member({ index, role, folder, servers: urls, settings, version })));
    closers.push(() => Promise.all(members.map((each) => each.close())));
    await until(() => members.every((each) => each.isReady()));
    await Promise.all([...exporters.values()].map((id) => first.webhooks.exporters.start(id)));
    if (first !== admin) {
        await first.close();
    }

    return {
        members,
        redis,
        postgres,
        admin,
        exporters,
        contentTypes: new Map(EXPORTERS.map((name) => [name, settings.ordered && name === FORMATTED ? ENVELOPED : PLAIN])),
        secrets,
        files,
        tellReceiver,
        async endMembers() {
            await Promise.all(members.map((each) => each.end()));
        },
    };
}

async function createExporters(
    { webhooks }: Engine,
    {
        ports,
        ordered,
        tellReceiver,
    }: { readonly ports: Readonly<Record<string, number>>; readonly ordered: boolean } & Pick<Deployment, 'tellReceiver'>,
): Promise<{ readonly exporters: Map<string, string>; readonly secrets: readonly string[] }> {
    const exporters = new Map<string, string>();
    const secrets: string[] = [];
    for (const name of EXPORTERS) {
        const header = randomBytes(24).toString('base64url');
        const { exporter, secret } = await webhooks.exporters.create({
            url: `http://${RECEIVER_NAME}:${ports[name]}/hook`,
            name,
            signatures: ['base64', 'standard-webhooks'],
            schedule: SCHEDULE,
            headers: [['X-Api-Key', header]],
            ...(ordered && name === ORDERED && { ordered }),
            ...(ordered && name === FORMATTED && { format: 'cloudevents' }),
        });
        exporters.set(name, exporter.id);
        secrets.push(secret, secret.slice('whsec_'.length), header);
        tellReceiver({ exporter: name, secret });
    }
    return { exporters, secrets };
}

async function servers(folder: string, closers: (() => Promise<unknown>)[]): Promise<Pick<Deployment, 'redis' | 'postgres'>> {
    const programs = serverPrograms();

    // PostgreSQL runs as another user where this one is root.
    chmodSync(folder, 0o755);
    const [redisFolder, postgresFolder] = [join(folder, 'redis'), join(folder, 'database')];
    mkdirSync(redisFolder);
    mkdirSync(postgresFolder);
    const redis = await redisPair(redisFolder, ['--rdbcompression', 'no', '--maxmemory-policy', 'noeviction']);
    closers.push(() => redis.close());
    const postgres = await postgresServer(postgresFolder, {
        programs: programs.postgres,
        settings: POSTGRES_SETTINGS,
        init: ['--wal-segsize', '1'],
    });
    closers.push(() => postgres.stop());
    return { redis, postgres };
}
