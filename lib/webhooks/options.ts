import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import Joi from 'joi';
import { applicationSchemaRules, checkingSchemaRule } from '../application-schema.ts';
import { machineClock } from '../clock.ts';
import type { EgressGuard } from '../egress/guard.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import { processWarning } from '../process-warning.ts';
import { inBytes, inMilliseconds, nameSchema, objectWith, withAbilities } from '../schema-validation.ts';
import type { DeliveryStore } from './deliveries/delivery-store.ts';
import { KEEP_FOR } from './deliveries/retention.ts';
import type { Role, SettingsStore } from './deployment-settings.ts';
import type { DeliveryQueue } from './dispatching/delivery-queue.ts';
import { SHARES } from './dispatching/slot-shares.ts';
import type { EventKind } from './events/event-kinds.ts';
import { collectorSchema, DEFAULT_COLLECTOR } from './exporters/exporter.ts';
import type { ExporterStore } from './exporters/exporter-store.ts';
import { type OwnerSettings, ownerSettingSchemas } from './exporters/owner-limits.ts';
import type { Format } from './formats/format.ts';
import type { WebhookEvent } from './observing/emitted-events.ts';
import type { Tracing } from './observing/tracing.ts';
import type { Sender } from './sending/http-sender.ts';

/** The stores, which must share one database: `postgresWebhooks({ pool })`, `memoryWebhooks()`. */
export interface WebhookStores {
    readonly exporters: ExporterStore;
    readonly deliveries: DeliveryStore;
    readonly settings: SettingsStore;
}

/** What `webhooks()` and its plugin (`plugins/webhook-exporter`) have in common. */
export interface WebhooksSettings extends OwnerSettings {
    /** What wakes the workers up, for example `redisQueue({ url })`. Stays open; whoever made it closes it. */
    readonly queue: DeliveryQueue;
    /** Seals secrets and header values at rest. */
    readonly keyRing: KeyRing;
    /** Whose data it is: `X-<vendor>-Event`, `<vendor> Webhook Data Exporter`. Default `Vendor`. */
    readonly vendor?: string;
    /** Deliveries of one exporter in the queue or being sent at once. Default 400. */
    readonly window?: number;
    /** Maximum number of attempts a second, of all exporters and workers together. Null, the default, for no limit. */
    readonly rate?: number | null;
    /** Consecutive failures that open an exporter's circuit breaker: it gets one due delivery at a time, as a probe. At most a million. Default 10. */
    readonly breakerAfter?: number;
    /**
     * Milliseconds after which an exporter is stopped whose receiver has answered no 2xx for so long, whether attempts failed or got only 429.
     * From half an hour to a hundred years. Default 5 days.
     */
    readonly stopAfter?: number;
    /**
     * Milliseconds for which a delivery is kept after it has ended, from a day to a hundred years; null for ever. An event is removed once it is a day older than
     * that and none of its deliveries is left. Default 30 days.
     */
    readonly keepFor?: number | null;
    /** Whether the beginning of what a receiver answers is kept, beside an attempt that was no 2xx, with what is secret masked. True by default. */
    readonly keepResponses?: boolean;
    /** The longest body of an event, in bytes of UTF-8. Default 1 MiB. */
    readonly maxBodyBytes?: number;
    /** The most bytes of bodies that this process holds at once while it sends them. Default 64 MiB. */
    readonly maxBytesInFlight?: number;
    /** Event kinds beside those of scanwire, which are `test`, `idr_investigation_created` (an investigation was opened) and those of notices. */
    readonly kinds?: readonly EventKind[];
    /** Formats beside those of scanwire. A worker needs none of them: it sends what hosts have made, and leaves to them what is still to be made. */
    readonly formats?: readonly Format[];
    /**
     * What another start of this process calls itself too, so that it ends at once what the one before has left, on whatever machine it ran. No two
     * running processes of a deployment may have the same: the later one sends, and the earlier one stops sending. Null, the default, for none: the
     * next start on the same machine knows that a process has ended, and others after 7.5 s.
     */
    readonly processName?: string | null;
    /** Spans of what is published and sent: `await webhookTracing()` of `scanwire/webhooks`. None by default. */
    readonly tracing?: Tracing | null;
}

/** What `webhooks()` is made of. */
export interface WebhooksOptions extends WebhookStores, WebhooksSettings {
    readonly sender: Sender;
    readonly guard: EgressGuard;
    /** Milliseconds that only go forward, as `performance.now`, and go on while the machine is suspended. Times are the store's. */
    readonly monotonic?: () => number;
    /** 0 to 1, as `Math.random`. */
    readonly random?: () => number;
    readonly newId?: () => string;
    /**
     * Resolves after this many milliseconds. It is used between the calls that try to record an outcome, and those that poll for the outcome of a
     * `test`; and where a change, pause or removal of an exporter, or an erasure, waits until nothing begins any more with what was before.
     */
    readonly sleep?: (milliseconds: number) => Promise<void>;
    /** Receives every failure of store and queue that is tried again later. */
    readonly onError?: (error: Error) => void;
    /** Told, as a sentence, of what is wrong but keeps nothing from working. By default the process emits a warning. */
    readonly onWarning?: (message: string) => void;
    /**
     * Called with every event that was published in this process and accepted for the first time, but not with tests and notices; with every
     * outcome that it has recorded in time, but not of deliveries that no worker can send; with deliveries that it has set aside as poisoned; and
     * with what became of exporters. What it throws goes to `onError`.
     */
    readonly onEvent?: (event: WebhookEvent) => void | Promise<void>;
    /** `host` by default: `start` keeps the settings in the store. */
    readonly role?: Role;
    /** Called once when another process has changed the settings. Nothing more is handed out or claimed until the next start. */
    readonly onOutdated?: () => void;
}

/** The rules of {@link WebhookStores}. */
export const webhookStoreSchemas: Readonly<Record<keyof WebhookStores, Joi.Schema>> = {
    exporters: withAbilities(
        objectWith<ExporterStore>('insert', 'get', 'list', 'health', 'update', 'remove'),
        ...(['summaries', 'page', 'overview', 'subscribers', 'notices', 'forgetNotices'] as const),
    ).required(),
    deliveries: withAbilities(
        objectWith<DeliveryStore>(
            'accept',
            'now',
            'dispatch',
            'sweep',
            'claim',
            'keepAlive',
            'sessions',
            'endSessions',
            'recordOutcomes',
            'get',
            'attempts',
            'list',
            'count',
            'replay',
            'event',
            'erase',
        ),
        ...(['listen', 'content', 'activity', 'discard'] as const),
    )
        .custom(withAttemptLists)
        .required(),
    settings: objectWith<SettingsStore>('read', 'declare').required(),
};

const MIB = 1024 * 1024;

/** The rules of {@link WebhooksSettings}, with their defaults. */
export const webhooksSettingSchemas: Readonly<Record<keyof WebhooksSettings, Joi.Schema>> = {
    queue: withAbilities(objectWith<DeliveryQueue>('ready', 'add', 'work', 'close'), 'address', 'hasLostJobs').required(),
    keyRing: objectWith<KeyRing>('seal', 'open').required(),
    vendor: Joi.string().default('Vendor'),
    window: Joi.number().integer().min(1).max(10_000).default(400),
    rate: Joi.number().integer().min(1).max(1000).allow(null).default(null),
    // The database counts failures in 32 bits.
    breakerAfter: Joi.number().integer().min(1).max(1_000_000).default(10),
    // The minimum refuses a value that was meant in seconds: five days of them would be taken for seven minutes, within which an update of the
    // receiver would have the exporter stopped.
    stopAfter: inMilliseconds(30 * 60_000).default(5 * 24 * 60 * 60_000),
    keepFor: inMilliseconds(KEEP_FOR.min).allow(null).default(KEEP_FOR.byDefault),
    keepResponses: Joi.boolean().default(true),
    maxBodyBytes: inBytes(1000)
        .max(64 * MIB)
        .default(MIB),
    maxBytesInFlight: Joi.number()
        .integer()
        .min(Joi.ref('maxBodyBytes'))
        .default(64 * MIB),
    kinds: Joi.array()
        .items(Joi.object({ name: Joi.string().required(), ...applicationSchemaRules, schema: checkingSchemaRule, types: Joi.function() }))
        .default([]),
    formats: Joi.array()
        .items(
            Joi.object({ name: Joi.string().required(), contentType: Joi.string().required(), make: Joi.function().required() }).unknown(),
        )
        .default([]),
    ...ownerSettingSchemas,
    processName: nameSchema.allow(null).default(null),
    tracing: objectWith<Tracing>('publishing', 'attempting').allow(null).default(null),
};

/** How a process stops to send. */
export interface CloseOptions {
    /**
     * Milliseconds after which `close` resolves, whatever hangs. About a second before, what is still being sent is given up, so that another
     * process can send it at once. An attempt's time-out, and a second for its outcome, should therefore fit in. By default 20,000, or the
     * time-out of an attempt plus 5,000, whichever is more.
     */
    readonly timeout?: number;
}

/** How a process sends. */
export interface WorkerOptions {
    /** Attempts that this process makes at once for each of its collectors. Default 400. */
    readonly concurrency?: number;
}

/** How much longer than an attempt a claim holds, so that its outcome can be recorded. Milliseconds. */
export const CLAIM_MARGIN = 5_000;

/** Milliseconds that a stop may take, where no attempt takes longer than by default. */
export const DRAIN_TIMEOUT = 20_000;

/** Milliseconds that a stop may take by default, so that every attempt can end and its outcome be recorded. */
export function drainTimeoutFor(attemptTimeout: number): number {
    return Math.max(DRAIN_TIMEOUT, attemptTimeout + CLAIM_MARGIN);
}

/** The warning for a host or a worker whose stop may cut off attempts that receivers could still answer; null where it cannot. */
export function drainWarning(drainTimeout: number, attemptTimeout: number): string | null {
    return drainTimeout >= attemptTimeout + OUTCOME_MARGIN
        ? null
        : `drainTimeout (${drainTimeout} ms) is shorter than attemptTimeout (${attemptTimeout} ms) and ${OUTCOME_MARGIN} ms for the outcome: ` +
              'a stop gives up attempts that could still be answered, and they are sent again';
}

/** Milliseconds that a stop keeps for recording outcomes. */
const OUTCOME_MARGIN = 1_000;

/** Attempts that a process makes at once for each of its collectors. */
export const CONCURRENCY: { readonly byDefault: number; readonly max: number } = { byDefault: SHARES.defaultSlots, max: 5000 };

/** The rules of what `Webhooks.work` takes, with their defaults. */
export const workerSettingSchemas: Readonly<Record<'collectors' | 'concurrency', Joi.Schema>> = {
    collectors: Joi.array().items(collectorSchema).default([DEFAULT_COLLECTOR]),
    concurrency: Joi.number().integer().min(1).max(CONCURRENCY.max).default(CONCURRENCY.byDefault),
};

/** The rules for what a worker is started with. */
export const workSchema: Joi.ObjectSchema<{ collectors: readonly string[]; concurrency: number }> = Joi.object(workerSettingSchemas);

/** {@link WebhooksOptions} with their defaults. */
export const webhooksSchema: Joi.ObjectSchema<Required<WebhooksOptions>> = Joi.object({
    ...webhookStoreSchemas,
    ...webhooksSettingSchemas,
    sender: objectWith<Sender>('send', 'close').required().custom(withTimeout),
    guard: objectWith<EgressGuard>('vet', 'vetHost').required(),
    monotonic: Joi.function().default(() => machineClock.now),
    random: Joi.function().default(() => Math.random),
    newId: Joi.function().default(() => randomUUID),
    sleep: Joi.function().default(() => sleep),
    onError: Joi.function().default(() => () => {}),
    onWarning: Joi.function().default(() => processWarning),
    onEvent: Joi.function().default(() => () => {}),
    role: Joi.string().valid('host', 'worker').default('host'),
    onOutdated: Joi.function().default(() => () => {}),
}).required();

/** Refuses a sender without `attemptTimeout`: claims have to be made to outlast its attempts. */
function withTimeout(sender: Sender, helpers: Joi.CustomHelpers<Sender>): Sender | Joi.ErrorReport {
    const { attemptTimeout } = sender;
    return Number.isFinite(attemptTimeout) && attemptTimeout > 0
        ? sender
        : helpers.message({ custom: '{{#label}}.attemptTimeout must be a positive number of milliseconds' });
}

function withAttemptLists(store: DeliveryStore, helpers: Joi.CustomHelpers<DeliveryStore>): DeliveryStore | Joi.ErrorReport {
    const { attemptLists } = store;
    const isWhole = !attemptLists || (typeof attemptLists.list === 'function' && typeof attemptLists.count === 'function');
    return isWhole ? store : helpers.message({ custom: '{{#label}} must have attemptLists with the functions list and count, or none' });
}
