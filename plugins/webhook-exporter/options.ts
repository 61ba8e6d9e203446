import Joi from 'joi';
import { objectWith } from '../../lib/checked.ts';
import type { KeyRing } from '../../lib/keys/key-ring.ts';
import type { EventKind } from '../../lib/webhooks/events.ts';
import { collectorSchema, DEFAULT_COLLECTOR } from '../../lib/webhooks/exporter.ts';
import type { DeliveryQueue } from '../../lib/webhooks/queue.ts';
import type { DeliveryStore, ExporterStore } from '../../lib/webhooks/store.ts';

export interface WebhookExporterOptions {
    /** Where exporters, events and deliveries are kept, for example `postgresWebhooks({ pool })`. */
    readonly stores: { readonly exporters: ExporterStore; readonly deliveries: DeliveryStore };
    /** What wakes the workers up, for example `redisQueue({ url })`. Stays open when the server stops; whoever made it closes it. */
    readonly queue: DeliveryQueue;
    /** Seals secrets and header values at rest. */
    readonly keyRing: KeyRing;
    /** The name in `X-Vendor-Event` and in the User-Agent. */
    readonly vendor?: string;
    /** The collectors that this process sends for; none where workers run elsewhere. */
    readonly collectors?: readonly string[];
    /** Attempts under way at once, per collector. */
    readonly concurrency?: number;
    /** Deliveries of one exporter in the queue or being sent at once. */
    readonly window?: number;
    /** Consecutive failures until an exporter is sent one probe at a time. */
    readonly breakerAfter?: number;
    /** Time for a whole attempt, from DNS to the last byte, in milliseconds. */
    readonly attemptTimeout?: number;
    /** Time to connect, in milliseconds. */
    readonly connectTimeout?: number;
    /** Non-public receiver addresses that may be called: CIDR blocks and host names. */
    readonly egress?: { readonly allow: readonly string[] };
    /** Event kinds beside `test` and `idr_investigation_created`. */
    readonly kinds?: readonly EventKind[];
}

export type CheckedWebhookExporterOptions = Required<WebhookExporterOptions>;

/** The longest that Standard Webhooks advises to wait for a receiver. */
const LONGEST_ATTEMPT = 30_000;

export const optionsSchema: Joi.ObjectSchema<CheckedWebhookExporterOptions> = Joi.object({
    stores: Joi.object({
        exporters: objectWith<ExporterStore>('insert', 'get', 'list', 'update', 'remove').required(),
        deliveries: objectWith<DeliveryStore>(
            'accept',
            'dispatch',
            'sweep',
            'claim',
            'settle',
            'get',
            'attempts',
            'list',
            'replay',
        ).required(),
    }).required(),
    queue: objectWith<DeliveryQueue>('ready', 'add', 'work', 'close').required(),
    keyRing: objectWith<KeyRing>('seal', 'open').required(),
    vendor: Joi.string().default('Vendor'),
    collectors: Joi.array().items(collectorSchema).default([DEFAULT_COLLECTOR]),
    concurrency: Joi.number().integer().min(1).max(5000).default(200),
    window: Joi.number().integer().min(1).max(10_000).default(50),
    breakerAfter: Joi.number().integer().min(1).default(10),
    attemptTimeout: Joi.number().integer().min(100).max(LONGEST_ATTEMPT).default(15_000),
    connectTimeout: Joi.number().integer().min(100).max(Joi.ref('attemptTimeout')).default(5_000),
    egress: Joi.object({ allow: Joi.array().items(Joi.string()).required() }).default({ allow: [] }),
    kinds: Joi.array()
        .items(Joi.object({ name: Joi.string().required(), schema: Joi.object().schema().required(), types: Joi.function() }))
        .default([]),
});
