import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import Joi from 'joi';
import { checked } from '../checked.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { EgressGuard } from '../egress/guard.ts';
import { ScanwireError } from '../errors.ts';
import { type KeyRing, sealingKeyId } from '../keys/key-ring.ts';
import { deliveryWorker } from './delivery-worker.ts';
import { dispatcher } from './dispatcher.ts';
import { type EventKind, eventKinds } from './events.ts';
import { type Exporters, exporters as exportersOf } from './exporters.ts';
import type { Sender } from './http-sender.ts';
import { type Publish, publisher } from './publisher.ts';
import type { DeliveryQueue, QueueWorker } from './queue.ts';
import { DEFAULT_VENDOR, vendorNamed } from './signature.ts';
import type { Attempt, Delivery, DeliveryQuery, DeliveryState, DeliveryStore, ExporterStore } from './store.ts';

/** A delivery with its attempts themselves, first to last, in place of their number. */
export type DeliveryHistory = Omit<Delivery, 'attempts'> & { readonly attempts: readonly Attempt[] };

/** Reads of deliveries, and their replay. */
export interface Deliveries {
    /** Newest first, 100 unless `limit` says otherwise, at most 1,000. @throws ScanwireError `INVALID_INPUT` with the field. */
    list(query?: Partial<DeliveryQuery>): Promise<readonly Delivery[]>;
    /** @throws ScanwireError `NOT_FOUND`. */
    show(id: string): Promise<DeliveryHistory>;
    /** Sends the same bytes under the same message id once more. @throws ScanwireError `NOT_FOUND`, `CONFLICT`. */
    replay(id: string): Promise<Delivery>;
}

/** The webhook exporter without a server around it. */
export interface Webhooks {
    readonly publish: Publish;
    readonly exporters: Exporters;
    readonly deliveries: Deliveries;
    /** Checks queue and sealing keys, then hands out what is due. @throws ScanwireError `MISCONFIGURED`, `UNAVAILABLE`. */
    start(): Promise<void>;
    /** Sends for these collectors in this process. */
    work(collectors: readonly string[], options?: { readonly concurrency?: number }): Promise<void>;
    /** Hands out nothing more, finishes what is being sent, ends idle connections. Stores and queue stay open. */
    close(): Promise<void>;
}

export interface WebhooksOptions {
    readonly exporters: ExporterStore;
    readonly deliveries: DeliveryStore;
    readonly queue: DeliveryQueue;
    readonly keyRing: KeyRing;
    readonly sender: Sender;
    readonly guard: EgressGuard;
    /** Whose data it is: `X-<vendor>-Event`, `<vendor> Webhook Data Exporter`. */
    readonly vendor?: string;
    readonly kinds?: readonly EventKind[];
    /** Deliveries of one exporter in the queue or being sent at once. */
    readonly window?: number;
    /** Consecutive failures until an exporter gets one probe at a time. */
    readonly breakerAfter?: number;
    /** How long an attempt may take at most, in milliseconds; the claim holds a little longer. */
    readonly attemptTimeout?: number;
    readonly clock?: Clock;
    readonly random?: () => number;
    readonly newId?: () => string;
    /** Told of every failure of store and queue that is tried again later. */
    readonly onError?: (error: Error) => void;
}

const DEFAULT_CONCURRENCY = 200;
const CLAIM_MARGIN = 5_000;
const STOP_PATIENCE = 200;
const DAY = 86_400_000;

/** Puts the exporter together from its parts. */
export function webhooks(options: WebhooksOptions): Webhooks {
    const {
        exporters,
        deliveries,
        queue,
        keyRing,
        sender,
        clock = systemClock,
        random = Math.random,
        newId = randomUUID,
        window = 50,
        breakerAfter = 10,
        attemptTimeout = 15_000,
        onError = () => {},
    } = options;
    const vendor = options.vendor === undefined ? DEFAULT_VENDOR : vendorNamed(options.vendor);
    const workers: QueueWorker[] = [];
    const dispatching = dispatcher({
        deliveries,
        queue,
        clock,
        window,
        breakerAfter,
        onError,
        pollEvery: 1_000,
        sweepEvery: 5_000,
        requeueAfter: 10_000,
    });
    const shared = { deliveries, keyRing, vendor, clock, newId, sleep: (ms: number) => sleep(ms) };
    const send = deliveryWorker({
        ...shared,
        queue,
        sender,
        random,
        breakerAfter,
        claimFor: attemptTimeout + CLAIM_MARGIN,
        onSettled: dispatching.kick,
        onError,
    });

    return {
        publish: publisher({ kinds: eventKinds(options.kinds), deliveries, clock, newId, onAccepted: dispatching.kick }),

        exporters: exportersOf({
            ...shared,
            exporters,
            guard: options.guard,
            secretOverlap: DAY,
            testPatience: attemptTimeout + CLAIM_MARGIN,
            stopPatience: STOP_PATIENCE,
            onAccepted: dispatching.kick,
        }),

        deliveries: {
            async list(query) {
                return deliveries.list(checked(deliveryQuerySchema, query));
            },

            async show(id) {
                const [delivery, attempts] = await Promise.all([deliveries.get(id), deliveries.attempts(id)]);
                if (delivery === null) {
                    throw new ScanwireError('NOT_FOUND', 'Unknown delivery', { field: 'id' });
                }

                return { ...delivery, attempts };
            },

            async replay(id) {
                const delivery = await deliveries.replay(id, clock());
                dispatching.kick();
                return delivery;
            },
        },

        async start() {
            await queue.ready();
            await assertKeysKnown(exporters, keyRing);
            dispatching.start();
        },

        async work(collectors, { concurrency = DEFAULT_CONCURRENCY } = {}) {
            for (const collector of new Set(collectors)) {
                workers.push(await send(collector, concurrency));
            }
        },

        async close() {
            await dispatching.stop();
            await Promise.all(workers.splice(0).map((worker) => worker.close()));
            await sender.close();
        },
    };
}

/** A ring that misses a key would fail every delivery of some exporters, one by one and late; say it at the start. */
async function assertKeysKnown(exporters: ExporterStore, keyRing: KeyRing): Promise<void> {
    for (const { id, sealedSecret, sealedHeaders } of await exporters.list()) {
        for (const sealed of [sealedSecret, sealedHeaders]) {
            const keyId = sealed === null ? keyRing.current : sealingKeyId(sealed);
            if (keyId === null || !keyRing.ids.has(keyId)) {
                throw new ScanwireError(
                    'MISCONFIGURED',
                    `Exporter ${id} is sealed with key ${keyId ?? 'of unknown form'}, which is not in the key ring`,
                    {
                        field: 'keyRing',
                    },
                );
            }
        }
    }
}

const STATES: readonly DeliveryState[] = ['pending', 'queued', 'sending', 'delivered', 'exhausted', 'cancelled'];

/** Most deliveries of one answer. */
const MOST = 1000;
const DEFAULT_LIMIT = 100;

/** What deliveries can be asked by; ids are texts, and one that names nothing finds nothing. */
export const deliveryQuerySchema: Joi.ObjectSchema<DeliveryQuery> = Joi.object<DeliveryQuery, true>({
    state: Joi.string().valid(...STATES),
    exporterId: Joi.string(),
    after: Joi.string(),
    limit: Joi.number().integer().min(1).max(MOST).default(DEFAULT_LIMIT),
})
    .label('query')
    .default({ limit: DEFAULT_LIMIT });
