import { postgresQueue, redisQueue } from '../adapters/bullmq/index.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import type { InventoryWriter } from '../lib/inventory/store.ts';
import { type ApiKeys, apiKeys } from '../lib/keys/api-keys.ts';
import { DEFAULT_COLLECTOR } from '../lib/webhooks/exporter-settings.ts';
import type { DeliveryQueue } from '../lib/webhooks/queue.ts';
import type { Webhooks } from '../lib/webhooks/webhooks.ts';
import { assertRingFits } from './assert-ring-fits.ts';
import { type DataFolder, prepareDataFolder } from './data-folder.ts';
import { egressAllowList } from './egress-allow-list.ts';
import { type ExporterParts, exporterOver } from './exporter-over.ts';
import { storedKeyRing } from './stored-key-ring.ts';
import { type StoredLicense, storedLicense } from './stored-license.ts';
import { openStores, type Stores } from './stores.ts';
import { within } from './within.ts';

export interface Migrated {
    /** Ids of the migrations that ran now; none when the schema was up to date. */
    readonly applied: readonly string[];
}

/** What operations work on: in the server that runs on a data folder, or in the process of a command. */
export interface System {
    readonly keys: Pick<ApiKeys, 'create' | 'list' | 'reveal' | 'revoke'>;
    readonly webhooks: Pick<Webhooks, 'publish' | 'exporters' | 'deliveries'>;
    readonly inventory: InventoryWriter;
    readonly license: StoredLicense;
    migrate(): Promise<Migrated>;
}

/** The parts of a deployment, chosen by its environment and opened. */
export interface Parts extends ExporterParts {
    readonly stores: Stores;
    readonly license: StoredLicense;
    close(): Promise<void>;
}

export interface SystemOptions {
    readonly folder: DataFolder;
    /** `DATABASE_URL`, `REDIS_URL`, `SCANWIRE_KEY_RING` and `SCANWIRE_EGRESS_ALLOW` are looked at. */
    readonly environment: NodeJS.ProcessEnv;
    readonly clock?: Clock;
    /** Told what goes wrong in the background. */
    readonly onError: (error: Error) => void;
}

const QUEUE_PATIENCE = 1_000;

/** @throws ScanwireError `MISCONFIGURED`, `UNAVAILABLE`; nothing stays open then. */
export async function openParts({ folder, environment, clock = systemClock, onError }: SystemOptions): Promise<Parts> {
    // Refused before anything is made or opened.
    const allow = egressAllowList(environment);
    await prepareDataFolder(folder);
    const [keyRing, license] = await Promise.all([storedKeyRing(folder, environment), storedLicense(folder, clock)]);
    const stores = await openStores(folder, environment.DATABASE_URL, onError);
    try {
        await assertRingFits(stores, keyRing);
        const queue = queueOf(stores, environment.REDIS_URL, onError);
        return {
            stores,
            keyRing,
            license,
            queue,
            allow,
            async close() {
                // An attempt that is still under way holds the queue; the stores are closed properly all the same.
                await within(QUEUE_PATIENCE, queue.close());
                await stores.pool.end();
            },
        };
    } catch (error) {
        await stores.pool.end();
        throw error;
    }
}

/** The system of a process that serves nothing. */
export interface OwnSystem extends System {
    /** Delivers what is due from here, where no other process can: on the embedded database. */
    deliverAlone(): Promise<void>;
    close(): Promise<void>;
}

export async function openSystem(options: SystemOptions): Promise<OwnSystem> {
    const parts = await openParts(options);
    const { stores, keyRing } = parts;
    const own = exporterOver(parts, options.onError);

    return {
        ...systemOf(parts, apiKeys({ store: stores.apiKeys, keyRing }), own),

        async deliverAlone() {
            if (stores.embedded) {
                await own.start();
                await own.work([DEFAULT_COLLECTOR], { concurrency: 10 });
            }
        },

        async close() {
            await own.close();
            await parts.close();
        },
    };
}

/** The system over parts that others work with as well, for example the plugins of a server. */
export function systemOf({ stores, license }: Parts, keys: System['keys'], exporter: System['webhooks']): System {
    let applied = stores.applied;
    return {
        keys,
        webhooks: exporter,
        inventory: stores.inventory,
        license,

        async migrate() {
            const before = applied;
            applied = [];
            return { applied: [...before, ...(await stores.migrate())] };
        },
    };
}

function queueOf({ pool }: Stores, url: string | undefined, onError: SystemOptions['onError']): DeliveryQueue {
    return url === undefined ? postgresQueue({ pool }) : redisQueue({ url, onWarning: (message) => onError(new Error(message)) });
}
