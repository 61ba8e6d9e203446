import type { Clock } from '../clock.ts';
import { ScanwireError } from '../errors.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import { batched } from './batched.ts';
import { openHeaders, openSecrets } from './exporters.ts';
import { messageHeaders } from './headers.ts';
import type { Message, Sender } from './http-sender.ts';
import type { Outcome, OutcomeCode } from './outcome.ts';
import { retryability } from './outcome-code.ts';
import type { DeliveryJob, DeliveryQueue, QueueWorker } from './queue.ts';
import { DEFAULT_SCHEDULE, nextStep } from './schedule.ts';
import type { Vendor } from './signature.ts';
import type { Claim, ClaimRequest, DeliveryStore, Settlement } from './store.ts';

export interface DeliveryWorkerParts {
    readonly deliveries: DeliveryStore;
    readonly queue: DeliveryQueue;
    readonly sender: Sender;
    readonly keyRing: KeyRing;
    readonly vendor: Vendor;
    readonly clock: Clock;
    readonly random: () => number;
    readonly newId: () => string;
    /** How long a claim holds, in milliseconds; longer than an attempt can take. */
    readonly claimFor: number;
    readonly breakerAfter: number;
    /** Waits so many milliseconds; used between tries to record an outcome. */
    readonly sleep: (milliseconds: number) => Promise<void>;
    /** Called after each delivery, so that the dispatcher fills the room that became free. */
    readonly onSettled: () => void;
    readonly onError: (error: Error) => void;
}

/** Claims or outcomes that share one statement, so many at most. */
const BATCH = 200;

/** An outcome is worth several tries to record: what is not recorded is sent again. */
const SETTLE_RETRIES: readonly number[] = [100, 300, 1000, 3000];

const PROBE_BASE = 5_000;
const PROBE_CAP = 5 * 60_000;

/**
 * Sends the deliveries of a collector: claims, signs, posts, records. Every step may be repeated or lost without harm: a job
 * whose delivery cannot be claimed is somebody else's or done.
 */
export function deliveryWorker(parts: DeliveryWorkerParts): (collector: string, concurrency: number) => Promise<QueueWorker> {
    const { deliveries, queue, clock, newId, claimFor, onSettled, onError } = parts;
    const claim = batched<ClaimRequest, Claim | null>((requests) => deliveries.claim(requests), BATCH);
    const settle = batched<Settlement, boolean>((settlements) => deliveries.settle(settlements), BATCH);

    async function deliver({ deliveryId }: DeliveryJob): Promise<void> {
        const now = clock();
        const claimed = await claim({ deliveryId, token: newId(), now, expiresAt: new Date(now.getTime() + claimFor) });
        if (claimed === null) {
            return;
        }

        const outcome = await attempt(claimed, parts);
        await record(settlementOf(claimed, outcome, parts));
        onSettled();
    }

    async function record(settlement: Settlement): Promise<void> {
        for (const delay of SETTLE_RETRIES) {
            try {
                await settle(settlement);
                return;
            } catch (error) {
                onError(error as Error);
                await parts.sleep(delay);
            }
        }

        await settle(settlement);
    }

    return (collector, concurrency) => queue.work(collector, deliver, { concurrency, onError });
}

async function attempt(claim: Claim, parts: DeliveryWorkerParts): Promise<Outcome> {
    let message: Message;
    try {
        message = messageOf(claim, parts);
    } catch (error) {
        return unsent(error);
    }

    return await parts.sender.send(message);
}

function messageOf({ event, exporter, single }: Claim, { keyRing, vendor, clock }: DeliveryWorkerParts): Message {
    const body = Buffer.from(event.body);
    const headers = messageHeaders({
        vendor,
        kind: event.kind,
        forms: exporter.signatures,
        secrets: openSecrets(exporter, keyRing, clock()),
        body,
        id: event.id,
        timestamp: clock(),
        additional: openHeaders(exporter, keyRing),
    });
    return { exporterId: exporter.id, url: exporter.url, trust: exporter.trust, headers, body, fresh: single };
}

/** An exporter that cannot be sent for is its configuration's fault; a secret that cannot be opened may be this worker's. */
function unsent(error: unknown): Outcome {
    const known = error instanceof ScanwireError;
    const code: OutcomeCode = known && error.code === 'INVALID_INPUT' ? 'invalid_exporter' : 'interrupted';
    return {
        code,
        status: null,
        detail: known ? error.message : 'The message could not be made',
        retryAfter: null,
        timings: { dns: null, connect: null, tls: null, firstByte: null, total: 0 },
        address: null,
        fingerprint: null,
    };
}

function settlementOf(claim: Claim, outcome: Outcome, { clock, random, breakerAfter }: DeliveryWorkerParts): Settlement {
    const { deliveryId, token, exporter, round, single } = claim;
    const now = clock();
    const failures = exporter.consecutiveFailures + 1;
    const failed = outcome.code !== 'delivered';
    return {
        deliveryId,
        exporterId: exporter.id,
        token,
        finishedAt: now,
        outcome,
        next: nextStep({
            kind: retryability(outcome, exporter.url).kind,
            retryAfter: outcome.retryAfter,
            round,
            single,
            schedule: exporter.schedule ?? DEFAULT_SCHEDULE,
            now,
            random,
        }),
        health: healthOf(outcome.code, single),
        probeAt: failed && failures >= breakerAfter ? probeTime(failures - breakerAfter, now) : null,
        stopReason: outcome.code === 'gone' ? 'the receiver answered 410 Gone' : null,
    };
}

/** A test says nothing about the exporter's deliveries, and a fault of our own nothing about the receiver. */
function healthOf(code: OutcomeCode, single: boolean): Settlement['health'] {
    if (single || code === 'interrupted') {
        return 'none';
    }

    return code === 'delivered' ? 'success' : 'failure';
}

function probeTime(probes: number, now: Date): Date {
    return new Date(now.getTime() + Math.min(PROBE_CAP, PROBE_BASE * 2 ** Math.min(probes, 10)));
}
