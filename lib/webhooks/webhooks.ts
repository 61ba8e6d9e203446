import { randomUUID } from 'node:crypto';
import { setTimeout as sleepFor } from 'node:timers/promises';
import Joi from 'joi';
import { checked, objectWith } from '../checked.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { EgressGuard } from '../egress/guard.ts';
import { assertOpens, type KeyRing } from '../keys/key-ring.ts';
import { type Deliveries, deliveriesOf } from './deliveries.ts';
import { deliveryWorker } from './delivery-worker.ts';
import { dispatcher } from './dispatcher.ts';
import { type EventKind, eventKinds } from './events.ts';
import { collectorSchema, DEFAULT_COLLECTOR } from './exporter.ts';
import { type Exporters, exporters as exportersOf, sealedForExporters } from './exporters.ts';
import type { Sender } from './http-sender.ts';
import { type Publish, publisher } from './publisher.ts';
import type { DeliveryQueue, QueueWorker } from './queue.ts';
import { vendorNamed } from './signature.ts';
import type { DeliveryStore, ExporterStore } from './store.ts';

/** The webhook exporter without a server around it. */
export interface Webhooks {
    readonly publish: Publish;
    readonly exporters: Exporters;
    readonly deliveries: Deliveries;
    /** Checks queue and key ring, then hands out what is due. @throws ScanwireError `MISCONFIGURED`, `UNAVAILABLE`. */
    start(): Promise<void>;
    /** Sends for these collectors in this process. @throws ScanwireError `MISCONFIGURED`, `UNAVAILABLE`. */
    work(collectors: readonly string[], options?: WorkerOptions): Promise<void>;
    /** Hands out nothing more, finishes what is being sent, ends idle connections. Stores and queue stay open. */
    close(): Promise<void>;
}

/** How a process sends. */
export interface WorkerOptions {
    /** Attempts at once, per collector. Default 200. */
    readonly concurrency?: number;
}

/** The two stores, which must share one database: `postgresWebhooks({ pool })`, `memoryWebhooks()`. */
export interface WebhookStores {
    readonly exporters: ExporterStore;
    readonly deliveries: DeliveryStore;
}

/** What {@link webhooks} and the plugin over it have in common. */
export interface WebhooksSettings {
    /** What wakes the workers up, for example `redisQueue({ url })`. Stays open; whoever made it closes it. */
    readonly queue: DeliveryQueue;
    /** Seals secrets and header values at rest. */
    readonly keyRing: KeyRing;
    /** Whose data it is: `X-<vendor>-Event`, `<vendor> Webhook Data Exporter`. Default `Vendor`. */
    readonly vendor?: string;
    /** Deliveries of one exporter in the queue or being sent at once. Default 50. */
    readonly window?: number;
    /** Consecutive failures from which on an exporter is sent one probe at a time. Default 10. */
    readonly breakerAfter?: number;
    /** Event kinds beside `test` and `idr_investigation_created`. */
    readonly kinds?: readonly EventKind[];
}

/** What {@link webhooks} is made of. */
export interface WebhooksOptions extends WebhookStores, WebhooksSettings {
    readonly sender: Sender;
    readonly guard: EgressGuard;
    readonly clock?: Clock;
    /** 0 to 1, as `Math.random`. */
    readonly random?: () => number;
    readonly newId?: () => string;
    /** Waits this many milliseconds: between tries to record an outcome, and while the outcome of a `test` is polled. */
    readonly sleep?: (milliseconds: number) => Promise<void>;
    /** Receives every failure of store and queue that is tried again later. */
    readonly onError?: (error: Error) => void;
}

/** The rules of {@link WebhookStores}. */
export const webhookStores: Readonly<Record<keyof WebhookStores, Joi.Schema>> = {
    exporters: objectWith<ExporterStore>('insert', 'get', 'list', 'update', 'remove').required(),
    deliveries: objectWith<DeliveryStore>('accept', 'dispatch', 'sweep', 'claim', 'settle', 'get', 'attempts', 'list', 'replay').required(),
};

/** The rules of {@link WebhooksSettings}, with their defaults. */
export const webhooksSettings: Readonly<Record<keyof WebhooksSettings, Joi.Schema>> = {
    queue: objectWith<DeliveryQueue>('ready', 'add', 'work', 'close').required(),
    keyRing: objectWith<KeyRing>('seal', 'open').required(),
    vendor: Joi.string().default('Vendor'),
    window: Joi.number().integer().min(1).max(10_000).default(50),
    breakerAfter: Joi.number().integer().min(1).default(10),
    kinds: Joi.array()
        .items(Joi.object({ name: Joi.string().required(), schema: Joi.object().schema().required(), types: Joi.function() }))
        .default([]),
};

/** Attempts at once, per collector. */
export const CONCURRENCY = { byDefault: 200, max: 5000 } as const;

/** The rules of what {@link Webhooks.work} takes, with their defaults. */
export const workerSettings: Readonly<Record<'collectors' | 'concurrency', Joi.Schema>> = {
    collectors: Joi.array().items(collectorSchema).default([DEFAULT_COLLECTOR]),
    concurrency: Joi.number().integer().min(1).max(CONCURRENCY.max).default(CONCURRENCY.byDefault),
};

type CheckedOptions = WebhooksOptions & Required<WebhooksSettings>;

const optionsSchema: Joi.ObjectSchema<CheckedOptions> = Joi.object({
    ...webhookStores,
    ...webhooksSettings,
    sender: objectWith<Sender>('send', 'close').required().custom(withTimeout),
    guard: objectWith<EgressGuard>('vet', 'vetHost').required(),
    clock: Joi.function(),
    random: Joi.function(),
    newId: Joi.function(),
    sleep: Joi.function(),
    onError: Joi.function(),
}).required();

/** Without the time-out of its attempts no claim could be made that outlasts them. */
function withTimeout(sender: Sender, helpers: Joi.CustomHelpers<Sender>): Sender | Joi.ErrorReport {
    const { attemptTimeout } = sender;
    return Number.isFinite(attemptTimeout) && attemptTimeout > 0
        ? sender
        : helpers.message({ custom: '{{#label}}.attemptTimeout must be a positive number of milliseconds' });
}

/** How much longer than an attempt a claim holds, so that its outcome can be recorded. Milliseconds. */
const CLAIM_MARGIN = 5_000;

/**
 * The webhook exporter: accepts events, keeps exporters, hands deliveries to the workers of their collectors, and sends them.
 *
 * @throws ScanwireError `MISCONFIGURED` that names the option and the rule it breaks.
 */
export function webhooks(options: WebhooksOptions): Webhooks {
    const settings = checked<CheckedOptions>(optionsSchema, options, { subject: 'webhooks options', code: 'MISCONFIGURED' });
    const { exporters, deliveries, queue, keyRing, sender, guard, window, breakerAfter } = settings;
    const { clock = systemClock, random = Math.random, newId = randomUUID, sleep = sleepFor, onError = () => {} } = settings;
    const claimDuration = sender.attemptTimeout + CLAIM_MARGIN;
    const workers: QueueWorker[] = [];

    const { start, wake, stop } = dispatcher({ deliveries, queue, clock, window, breakerAfter, onError });
    const shared = { deliveries, keyRing, vendor: vendorNamed(settings.vendor), clock, newId, sleep };
    const startWorker = deliveryWorker({ ...shared, queue, sender, random, claimDuration, breakerAfter, onSettled: wake, onError });

    return {
        publish: publisher({ kinds: eventKinds(settings.kinds), deliveries, clock, newId, onAccepted: wake }),
        exporters: exportersOf({ ...shared, exporters, guard, testTimeout: claimDuration, onAccepted: wake }),
        deliveries: deliveriesOf(deliveries, clock, wake),

        async start() {
            await queue.ready();
            assertOpens(keyRing, await sealedForExporters(exporters, clock()));
            start();
        },

        async work(collectors, { concurrency } = {}) {
            const valid = checked(workSchema, { collectors, concurrency }, { subject: 'work options', code: 'MISCONFIGURED' });
            for (const collector of new Set(valid.collectors)) {
                workers.push(await startWorker(collector, valid.concurrency));
            }
        },

        async close() {
            await stop();
            await Promise.all(workers.splice(0).map((worker) => worker.close()));
            await sender.close();
        },
    };
}

const workSchema = Joi.object<{ collectors: readonly string[]; concurrency: number }>(workerSettings);
