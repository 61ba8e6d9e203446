import type { Clock } from '../clock.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import { batched } from './batched.ts';
import { messageHeaders, openHeaders } from './headers.ts';
import type { Message, Sender } from './http-sender.ts';
import { newProgress, type Outcome, type OutcomeCode, outcomeOf } from './outcome.ts';
import { resultOfError } from './outcome-code.ts';
import type { DeliveryJob, DeliveryQueue, QueueWorker } from './queue.ts';
import { DEFAULT_SCHEDULE, nextStep } from './schedule.ts';
import { openSecrets, type Vendor } from './signature.ts';
import type { Claim, ClaimRequest, DeliveryStore, RecordedOutcome } from './store.ts';

/** What a worker works with. */
export interface DeliveryWorkerOptions {
    readonly deliveries: DeliveryStore;
    readonly queue: DeliveryQueue;
    readonly sender: Sender;
    readonly keyRing: KeyRing;
    readonly vendor: Vendor;
    readonly clock: Clock;
    readonly random: () => number;
    readonly newId: () => string;
    /** How long a claim holds, in milliseconds; longer than an attempt can take. */
    readonly claimDuration: number;
    /** Consecutive failures from which on an exporter gets one probe at a time. */
    readonly breakerAfter: number;
    /** Waits this many milliseconds; used between tries to record an outcome. */
    readonly sleep: (milliseconds: number) => Promise<void>;
    /** Called after each delivery, so that the dispatcher fills the room that became free. */
    readonly onRecorded: () => void;
    readonly onError: (error: Error) => void;
}

/** Maximum number of claims or outcomes that share one statement. */
const BATCH = 200;

/** Milliseconds between the tries to record an outcome: what is not recorded is sent again. */
const RECORD_RETRIES: readonly number[] = [100, 300, 1000, 3000];

/** Milliseconds to the first probe of a broken exporter; doubled for each further one, up to the maximum. */
const FIRST_PROBE = 5_000;
const MAX_PROBE = 5 * 60_000;

/**
 * Sends the deliveries of a collector: claims, signs, posts, records. Every step may be repeated or lost without harm: a job
 * whose delivery cannot be claimed is somebody else's or done.
 */
export function deliveryWorker(options: DeliveryWorkerOptions): (collector: string, concurrency: number) => Promise<QueueWorker> {
    const { deliveries, queue, clock, newId, claimDuration, onRecorded, onError } = options;
    const claim = batched<ClaimRequest, Claim | null>((requests) => deliveries.claim(requests), BATCH);
    const recordOutcome = batched<RecordedOutcome, boolean>((outcomes) => deliveries.recordOutcomes(outcomes), BATCH);

    async function deliver({ deliveryId }: DeliveryJob): Promise<void> {
        const now = clock();
        const claimed = await claim({ deliveryId, token: newId(), now, expiresAt: new Date(now.getTime() + claimDuration) });
        if (claimed === null) {
            return;
        }

        const outcome = await attempt(claimed, options);
        await record(recordedOutcome(claimed, outcome, options));
        onRecorded();
    }

    async function record(recorded: RecordedOutcome): Promise<void> {
        for (const delay of RECORD_RETRIES) {
            try {
                await recordOutcome(recorded);
                return;
            } catch (error) {
                onError(error as Error);
                await options.sleep(delay);
            }
        }

        await recordOutcome(recorded);
    }

    return (collector, concurrency) => queue.work(collector, deliver, { concurrency, onError });
}

async function attempt(claim: Claim, options: DeliveryWorkerOptions): Promise<Outcome> {
    let message: Message;
    try {
        message = messageOf(claim, options);
    } catch (error) {
        return outcomeOf(resultOfError(error), newProgress(), 0);
    }

    return await options.sender.send(message);
}

function messageOf({ event, exporter, singleAttempt }: Claim, { keyRing, vendor, clock }: DeliveryWorkerOptions): Message {
    const now = clock();
    const body = Buffer.from(event.body);
    const headers = messageHeaders({
        vendor,
        kind: event.kind,
        forms: exporter.signatures,
        secrets: openSecrets(exporter, keyRing, now),
        body,
        id: event.id,
        timestamp: now,
        additional: openHeaders(exporter, keyRing),
    });
    return { exporterId: exporter.id, url: exporter.url, trust: exporter.trust, headers, body, newConnection: singleAttempt };
}

function recordedOutcome(claim: Claim, outcome: Outcome, { clock, random, breakerAfter }: DeliveryWorkerOptions): RecordedOutcome {
    const { deliveryId, token, exporter, attemptSinceReplay, singleAttempt } = claim;
    const now = clock();
    const schedule = exporter.schedule ?? DEFAULT_SCHEDULE;
    const failures = exporter.consecutiveFailures + 1;
    const failed = outcome.code !== 'delivered';
    return {
        deliveryId,
        exporterId: exporter.id,
        token,
        finishedAt: now,
        outcome,
        next: nextStep({ outcome, url: exporter.url, schedule, attemptSinceReplay, singleAttempt, now, random }),
        health: healthOf(outcome.code, singleAttempt),
        probeAt: failed && failures >= breakerAfter ? probeTime(failures - breakerAfter, now) : null,
        stopReason: outcome.code === 'gone' ? 'The receiver answered 410 Gone' : null,
    };
}

/** A test says nothing about the exporter's deliveries, and a fault of our own nothing about the receiver. */
function healthOf(code: OutcomeCode, singleAttempt: boolean): RecordedOutcome['health'] {
    if (singleAttempt || code === 'interrupted') {
        return 'none';
    }

    return code === 'delivered' ? 'success' : 'failure';
}

function probeTime(probes: number, now: Date): Date {
    return new Date(now.getTime() + Math.min(MAX_PROBE, FIRST_PROBE * 2 ** Math.min(probes, 10)));
}
