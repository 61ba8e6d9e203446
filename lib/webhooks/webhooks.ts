import { checked } from '../checked.ts';
import { assertOpens } from '../keys/key-ring.ts';
import { type Deliveries, deliveriesOf } from './deliveries.ts';
import { deliveryWorker } from './delivery-worker.ts';
import { dispatcher } from './dispatcher.ts';
import { eventKinds } from './events.ts';
import { type Exporters, exporters, sealedForExporters } from './exporters.ts';
import { type WebhooksContext, type WebhooksOptions, webhooksSchema, workSchema } from './options.ts';
import { type Publish, publisher } from './publisher.ts';
import type { QueueWorker } from './queue.ts';
import { vendorNamed } from './signature.ts';

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

/** How much longer than an attempt a claim holds, so that its outcome can be recorded. Milliseconds. */
const CLAIM_MARGIN = 5_000;

/**
 * The webhook exporter: accepts events, keeps exporters, hands deliveries to the workers of their collectors, and sends them.
 *
 * @throws ScanwireError `MISCONFIGURED` that names the option and the rule it breaks.
 */
export function webhooks(options: WebhooksOptions): Webhooks {
    const settings = checked(webhooksSchema, options, { subject: 'webhooks options', code: 'MISCONFIGURED' });
    const { start, wake, stop } = dispatcher(settings);
    const context: WebhooksContext = {
        ...settings,
        vendor: vendorNamed(settings.vendor),
        kinds: eventKinds(settings.kinds),
        claimDuration: settings.sender.attemptTimeout + CLAIM_MARGIN,
        wake,
    };
    const startWorker = deliveryWorker(context);
    const workers: QueueWorker[] = [];

    return {
        publish: publisher(context),
        exporters: exporters(context),
        deliveries: deliveriesOf(context),

        async start() {
            await settings.queue.ready();
            assertOpens(settings.keyRing, await sealedForExporters(settings.exporters, settings.clock()));
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
            await settings.sender.close();
        },
    };
}
