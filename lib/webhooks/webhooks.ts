import { checked } from '../checked.ts';
import { ScanwireError } from '../errors.ts';
import { assertOpens } from '../keys/key-ring.ts';
import { FIRST_PROBE, MAX_PROBE } from './breaker.ts';
import { type Deliveries, deliveriesOf } from './deliveries.ts';
import { deliveryWorker } from './delivery-worker.ts';
import { dispatcher } from './dispatcher.ts';
import { eventKinds } from './events.ts';
import { type Exporters, exporters, sealedForExporters } from './exporters.ts';
import { type WebhooksContext, type WebhooksOptions, webhooksSchema, workSchema } from './options.ts';
import { type Publish, publisher } from './publisher.ts';
import type { QueueWorker } from './queue.ts';
import { claimingSession } from './session.ts';
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
    const { window, breakerAfter, stopAfter } = settings;
    const parts: Omit<WebhooksContext, 'wake'> = {
        ...settings,
        vendor: vendorNamed(settings.vendor),
        kinds: eventKinds(settings.kinds),
        breaker: { after: breakerAfter, firstProbe: FIRST_PROBE, maxProbe: MAX_PROBE, stopAfter, window },
        claimDuration: settings.sender.attemptTimeout + CLAIM_MARGIN,
    };
    const { start, wake, stop } = dispatcher(parts);
    const context: WebhooksContext = { ...parts, wake };
    const session = claimingSession(context);
    const startWorker = deliveryWorker(context, session.id);
    const workers: QueueWorker[] = [];

    return {
        publish: publisher(context),
        exporters: exporters(context),
        deliveries: deliveriesOf(context),

        async start() {
            await settings.queue.ready();
            const now = await settings.deliveries.now();
            reportDifference(now, settings.onError);
            assertOpens(settings.keyRing, await sealedForExporters(settings.exporters, now));
            start();
        },

        async work(collectors, { concurrency } = {}) {
            const valid = checked(workSchema, { collectors, concurrency }, { subject: 'work options', code: 'MISCONFIGURED' });
            if (workers.length === 0) {
                await session.begin();
            }
            for (const collector of new Set(valid.collectors)) {
                workers.push(await startWorker(collector, valid.concurrency));
            }
        },

        async close() {
            await stop();
            if (workers.length > 0) {
                await Promise.all(workers.splice(0).map((worker) => worker.close()));
                await session.end();
            }
            await settings.sender.close();
        },
    };
}

/** Milliseconds between the clock of this process and that of the store from which on people should hear of it. */
const MAX_DIFFERENCE = 1_000;

/** Nothing here depends on the clock of this process, but its log and that of the receivers are hard to read side by side then. */
function reportDifference(storeTime: Date, onError: (error: Error) => void): void {
    const difference = Date.now() - storeTime.getTime();
    if (Math.abs(difference) > MAX_DIFFERENCE) {
        const seconds = (Math.abs(difference) / 1000).toFixed(1);
        const side = difference > 0 ? 'ahead of' : 'behind';
        onError(new ScanwireError('MISCONFIGURED', `The clock of this process is ${seconds} s ${side} that of the store`));
    }
}
