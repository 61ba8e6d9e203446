import { rm, rmdir } from 'node:fs/promises';
import Joi from 'joi';
import { type AuditTrailOptions, auditTrail } from '../lib/audit/audit-trail.ts';
import { egressGuard } from '../lib/egress/guard.ts';
import { type Resolver, resolverSchema } from '../lib/egress/resolver.ts';
import { ScanwireError } from '../lib/errors.ts';
import { apiKeys } from '../lib/keys/api-keys.ts';
import type { KeyRing } from '../lib/keys/key-ring.ts';
import { checked } from '../lib/schema-validation.ts';
import type { DeploymentSettings } from '../lib/webhooks/deployment-settings.ts';
import type { DeliveryQueue } from '../lib/webhooks/dispatching/delivery-queue.ts';
import { type EventKind, isNoticeKind } from '../lib/webhooks/events/event-kinds.ts';
import { DEFAULT_COLLECTOR } from '../lib/webhooks/exporters/exporter.ts';
import type { OwnerSettings } from '../lib/webhooks/exporters/owner-limits.ts';
import { UnknownFormat } from '../lib/webhooks/formats/format.ts';
import { type Doctor, diagnosis } from '../lib/webhooks/observing/doctor.ts';
import { webhookTracing } from '../lib/webhooks/observing/tracing.ts';
import type { WebhookStores, WebhooksOptions } from '../lib/webhooks/options.ts';
import { httpSender } from '../lib/webhooks/sending/http-sender.ts';
import { ofSending } from '../lib/webhooks/setting-values.ts';
import { type Webhooks, webhooks } from '../lib/webhooks/webhooks.ts';
import { within } from '../lib/within.ts';
import type { System } from '../plugins/admin-console/system.ts';
import { type DataFolder, dataFolderExists, prepareDataFolder } from './data-folder.ts';
import { diskFinding } from './disk-finding.ts';
import type { HostOptions } from './host-options.ts';
import { assertRingFits, lacksKeyRing, storedKeyRing } from './stored-key-ring.ts';
import { type StoredLicense, storedLicense } from './stored-license.ts';
import { openRedisQueue, openStores, queueBeside, type Stores } from './stores.ts';

/** The parts of a deployment, chosen by its environment and opened. */
export interface Parts extends Required<Omit<WebhooksParts, 'manages'>> {
    readonly folder: DataFolder;
    readonly stores: Stores;
    /** One that is installed takes effect within a second. */
    readonly license: StoredLicense;
    close(): Promise<void>;
}

/** What a system is made of. */
export interface SystemOptions {
    readonly folder: DataFolder;
    /** `DATABASE_URL`, `REDIS_URL`, `SCANWIRE_KEY_RING` and `SCANWIRE_EGRESS_ALLOW` are looked at. */
    readonly environment: NodeJS.ProcessEnv;
    /** Whether `DATABASE_URL` leads to a pooler of transactions. False when absent. */
    readonly pooled?: boolean;
    /** Options of the host whose database it is. `stores` and `queue` of them are not used: all that a system keeps is in one database. */
    readonly config?: HostOptions | null;
    /** Told what goes wrong in the background. */
    readonly onError: (error: Error) => void;
}

const QUEUE_PATIENCE = 1_000;

/** Left behind, it would be taken for the ring of the database. A new folder goes with it, unless something else is in it by now. */
async function removeNewRing({ keyRing, path }: DataFolder, isNewFolder: boolean): Promise<void> {
    await rm(keyRing, { force: true });
    if (isNewFolder) {
        await rmdir(path).catch(() => {});
    }
}

/** @throws ScanwireError `MISCONFIGURED`, `UNAVAILABLE`; nothing stays open then. */
export async function openParts({ folder, environment, pooled = false, config = null, onError }: SystemOptions): Promise<Parts> {
    // Refused before anything is made or opened. The queue on Redis is opened when it is first asked for anything.
    const receivers = receiversIn(environment);
    const { REDIS_URL: url } = environment;
    const redis = url === undefined ? null : await openRedisQueue(url, onError);
    const isNew = !(await dataFolderExists(folder));
    await prepareDataFolder(folder);
    const makesRing = config?.keyRing === undefined && (await lacksKeyRing(folder, environment));
    const keyRing = config?.keyRing ?? (await storedKeyRing(folder, environment));
    const stores = await openStores(folder, { url: environment.DATABASE_URL, pooled }, onError);
    try {
        await assertRingFits(stores, keyRing).catch(async (error: ScanwireError) => {
            if (makesRing && error.code === 'MISCONFIGURED') {
                await removeNewRing(folder, isNew);
            }
            throw error;
        });
        // Makes files of its own: not in a folder that is to go again.
        const license = await storedLicense(folder);
        const queue = redis ?? (await queueBeside(stores));
        return {
            stores,
            keyRing,
            license,
            queue,
            receivers,
            config,
            folder,
            async close() {
                // An attempt that is still under way holds the queue; the stores are closed properly all the same.
                await within(queue.close(), { timeout: QUEUE_PATIENCE }).catch(() => {});
                await stores.pool.end();
            },
        };
    } catch (error) {
        await stores.pool.end();
        throw error;
    }
}

/**
 * What `act` comes to on the system of a process that serves nothing; the system is open for that long. How long anything is kept is not for it to say.
 *
 * @param delivers What is due must be delivered meanwhile: from here, if no other process can because the database is embedded.
 */
export async function withOwnSystem<T>(options: SystemOptions, delivers: boolean, act: (system: System) => Promise<T>): Promise<T> {
    const parts = await openParts(options);
    const { stores, keyRing, config } = parts;
    const { onError } = options;
    let own: Webhooks | undefined;
    try {
        const { settings } = await stores.webhooks.settings.read();
        // What nobody else can have open is this process's to settle, unless a host has; elsewhere it starts nothing.
        const role = config === null ? 'host' : 'worker';
        const whole = config && { ...ofManagement(settings), ...config };
        own = await webhooksOver({ ...parts, config: whole, manages: true, stores: stores.webhooks }, settings, { role, onError });
        if (delivers && stores.embedded) {
            await own.start();
            await own.work([DEFAULT_COLLECTOR], { concurrency: 10 });
        }

        return await act(systemOf(parts, apiKeys({ store: stores.apiKeys, keyRing }), own, { keepFor: null, onError }));
    } catch (error) {
        throw error instanceof UnknownFormat && config === null && !stores.embedded ? formatOfHost(error) : error;
    } finally {
        await own?.close();
        await parts.close();
    }
}

function formatOfHost(cause: UnknownFormat): ScanwireError {
    return new ScanwireError(cause.code, `${cause.message}. One of the host's own needs --config`, { field: 'format', cause });
}

/** The system over parts that others work with as well, for example the plugins of a server. */
export function systemOf(
    { stores, license, folder }: Parts,
    keys: System['keys'],
    own: Pick<Webhooks, keyof System['webhooks']>,
    trail: Omit<AuditTrailOptions, 'store'>,
): System {
    // What opening the stores has migrated is said once, to whoever asks first.
    let applied = stores.applied;
    return {
        keys,
        webhooks: { ...own, doctor: withDisk(own.doctor, folder) },
        inventory: stores.inventory,
        license,
        audit: auditTrail({ store: stores.audit, ...trail }),

        async migrate() {
            const before = applied;
            applied = [];
            return [...before, ...(await stores.migrate())];
        },
    };
}

/** Looks at the disk of the data folder as well, before receivers. */
function withDisk(doctor: Doctor, folder: DataFolder): Doctor {
    return async (exporterId) => {
        const [{ findings }, disk] = await Promise.all([doctor(exporterId), diskFinding(folder.path)]);
        const first = findings.findIndex(({ part }) => part === 'exporter');
        return diagnosis(findings.toSpliced(first === -1 ? findings.length : first, 0, disk));
    };
}

/** What the environment says of receivers: only what is set in it. */
export interface Receivers {
    /** Non-public receiver addresses that may be called. */
    readonly egress?: { readonly allow: readonly string[] };
    readonly resolver?: Resolver;
}

/** What a webhook exporter works with. */
export interface WebhooksParts {
    readonly keyRing: KeyRing;
    readonly queue: DeliveryQueue;
    readonly receivers: Receivers;
    /** The host's own options, where they were given. */
    readonly config?: HostOptions | null;
    /** Whether exporters are managed with it, or events published: then kinds and what owners may have are those of the host too. */
    readonly manages?: boolean;
}

/**
 * The webhook exporter of a process that serves nothing: with the settings that are kept, or the host's own options, and what its environment says
 * besides.
 *
 * @throws ScanwireError `MISCONFIGURED`, also for options that are not those of the host.
 */
export async function webhooksOver(
    { config = null, ...parts }: WebhooksParts & { readonly stores: WebhookStores },
    kept: DeploymentSettings | null,
    more: Pick<WebhooksOptions, 'onError' | 'onEvent' | 'role' | 'onOutdated' | 'processName'>,
): Promise<Webhooks> {
    return config === null ? await webhooksAsKept(parts, kept, more) : await webhooksAsGiven(parts, { kept, config }, more);
}

type OverStores = Omit<WebhooksParts, 'config'> & { readonly stores: WebhookStores };
type More = Parameters<typeof webhooksOver>[2];

async function webhooksAsGiven(
    { stores, keyRing, queue, receivers, manages = false }: OverStores,
    { kept, config }: { readonly kept: DeploymentSettings | null; readonly config: HostOptions },
    { processName, ...more }: More,
): Promise<Webhooks> {
    // Loaded here: few processes have it.
    const { webhooksOf } = await import('../plugins/webhook-exporter/options.ts');
    const named = processName === undefined ? {} : { processName };
    const options = { ...receivers, ...config, ...named, stores, keyRing, queue };
    const { webhooks: own, assertOfHost } = webhooksOf(options, more);
    assertOfHost(kept, manages ? 'host' : 'worker');
    return own;
}

async function webhooksAsKept(
    { stores, keyRing, queue, receivers }: OverStores,
    kept: DeploymentSettings | null,
    more: More,
): Promise<Webhooks> {
    const { egress, limits, settings } = kept === null ? NOTHING_KEPT : optionsFrom(kept);
    const { resolver } = receivers;
    const tracing = kept?.tracing === undefined ? null : await webhookTracing(kept.tracing);
    try {
        const guard = egressGuard({ ...egress, ...receivers.egress });
        const sender = httpSender({ guard, ...limits, ...(resolver !== undefined && { resolver }) });
        // A worker cannot differ from its host in what it does not have.
        const managing = more.role === 'worker' ? {} : ofManagement(kept);
        // No setting says how long anything is kept: that is for the process to say that serves.
        return webhooks({ ...stores, keyRing, queue, ...settings, ...managing, keepFor: null, tracing, guard, sender, ...more });
    } catch (error) {
        throw kept === null ? error : keptRefusal(error);
    }
}

/** Nobody here has given what a host of a version before has stored, and this one refuses. */
function keptRefusal(error: unknown): unknown {
    if (!(error instanceof ScanwireError) || error.code !== 'MISCONFIGURED') {
        return error;
    }

    const message = `Cannot use the settings that a host has stored: ${error.message}. Start the host with others first`;
    return new ScanwireError('MISCONFIGURED', message, { ...(error.field !== undefined && { field: error.field }), cause: error });
}

const NOTHING_KEPT = { egress: { allow: [] }, limits: {}, settings: {} };

/**
 * The options that are kept; one that this version does not know is refused with the limits of the sender. Of a sender that somebody else
 * has made there are none, and this one has those by default.
 */
function optionsFrom(kept: DeploymentSettings) {
    const { vendor, window, rate = null, breakerAfter, stopAfter, maxBodyBytes, egress = { allow: [] }, ...others } = ofSending(kept);
    const { kinds: _, queue: __, prefix: ___, tracing: ____, keepResponses = true, ...limits } = others;
    return {
        egress,
        limits: limits.connectTimeout === undefined ? {} : limits,
        settings: { vendor, window, rate, breakerAfter, stopAfter, maxBodyBytes, keepResponses },
    };
}

/**
 * What only those need who publish or manage exporters: kinds of the application, by their names, and what owners may have. An older host may have a
 * kind of a name that is refused by now.
 */
function ofManagement(kept: DeploymentSettings | null): Pick<HostOptions, 'kinds' | keyof OwnerSettings> {
    const { kinds = [], maxExportersPerOwner = null, owners = {} } = kept ?? {};
    return { kinds: kinds.filter((name) => !isNoticeKind(name)).map(namedKind), maxExportersPerOwner, owners };
}

/**
 * A kind of the application, of which the host has stored the name alone. Exporters may choose it, and their filters may ask for anything; but no
 * event of it can be made here.
 */
function namedKind(name: string): EventKind {
    const message = 'this process has no schema of this kind of the application: it needs --config';
    return { name, schema: Joi.object().custom((_, helpers) => helpers.message({ custom: message })) };
}

const EGRESS_ALLOW = 'SCANWIRE_EGRESS_ALLOW';
const RESOLVER = 'SCANWIRE_RESOLVER';

/** What `SCANWIRE_EGRESS_ALLOW` and `SCANWIRE_RESOLVER` say. @throws ScanwireError `MISCONFIGURED`. */
export function receiversIn(environment: NodeJS.ProcessEnv): Receivers {
    const schema = Joi.object({ [RESOLVER]: resolverSchema });
    const { [RESOLVER]: resolver } = checked(schema, { [RESOLVER]: environment[RESOLVER] }, { code: 'MISCONFIGURED' });
    const allow = egressAllowList(environment);
    return {
        ...(environment[EGRESS_ALLOW] !== undefined && { egress: { allow } }),
        ...(environment[RESOLVER] !== undefined && { resolver }),
    };
}

/**
 * What `SCANWIRE_EGRESS_ALLOW` opens: CIDR blocks, addresses and host names, with commas between them.
 *
 * @throws ScanwireError `MISCONFIGURED` that names the variable and the entry.
 */
function egressAllowList(environment: NodeJS.ProcessEnv): readonly string[] {
    const allow = (environment[EGRESS_ALLOW] ?? '')
        .split(',')
        .map((entry) => entry.trim())
        .filter((entry) => entry !== '');
    try {
        egressGuard({ allow });
    } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new ScanwireError('MISCONFIGURED', `${EGRESS_ALLOW}: ${reason}`, { field: EGRESS_ALLOW, cause: error });
    }

    return allow;
}
