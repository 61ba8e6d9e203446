import { batched } from './batched.ts';
import { messageHeaders, openHeaders } from './headers.ts';
import type { Message } from './http-sender.ts';
import type { WebhooksContext } from './options.ts';
import { newProgress, type Outcome, type OutcomeCode, outcomeOf } from './outcome.ts';
import { resultOfError } from './outcome-code.ts';
import type { DeliveryJob, QueueWorker } from './queue.ts';
import { DEFAULT_SCHEDULE, nextStep } from './schedule.ts';
import { openSecrets } from './signature.ts';
import type { Claim, ClaimRequest, RecordedOutcome } from './store.ts';

/** Maximum number of claims or outcomes that share one statement. */
const BATCH = 200;

/** Milliseconds between the tries to record an outcome: what is not recorded is sent again. */
const RECORD_RETRIES: readonly number[] = [100, 300, 1000, 3000];

/** Milliseconds to the first probe of a failing exporter; doubled for each further one, up to the maximum. */
const FIRST_PROBE = 5_000;
const MAX_PROBE = 5 * 60_000;

/**
 * Sends the deliveries of a collector: claims, signs, posts, records. Every step may be repeated or lost without harm: a job
 * whose delivery cannot be claimed is somebody else's or done.
 */
export function deliveryWorker(context: WebhooksContext): (collector: string, concurrency: number) => Promise<QueueWorker> {
    const { deliveries, queue, clock, newId, claimDuration, wake, onError } = context;
    const claimBatched = batched<ClaimRequest, Claim | null>((requests) => deliveries.claim(requests), BATCH);
    const recordBatched = batched<RecordedOutcome, boolean>((outcomes) => deliveries.recordOutcomes(outcomes), BATCH);

    async function deliver({ deliveryId }: DeliveryJob): Promise<void> {
        const now = clock();
        const claimed = await claimBatched({ deliveryId, token: newId(), now, expiresAt: new Date(now.getTime() + claimDuration) });
        if (claimed === null) {
            return;
        }

        const outcome = await attempt(claimed, context);
        await record(outcomeToRecord(claimed, outcome, context));
        wake();
    }

    async function record(recorded: RecordedOutcome): Promise<void> {
        for (const delay of RECORD_RETRIES) {
            try {
                await recordBatched(recorded);
                return;
            } catch (error) {
                onError(error as Error);
                await context.sleep(delay);
            }
        }

        await recordBatched(recorded);
    }

    return (collector, concurrency) => queue.work(collector, deliver, { concurrency, onError });
}

async function attempt(claim: Claim, context: WebhooksContext): Promise<Outcome> {
    let message: Message;
    try {
        message = messageOf(claim, context);
    } catch (error) {
        return outcomeOf(resultOfError(error), newProgress(), 0);
    }

    return await context.sender.send(message);
}

function messageOf({ event, exporter, singleAttempt }: Claim, { keyRing, vendor, clock }: WebhooksContext): Message {
    const now = clock();
    const body = Buffer.from(event.body);
    const signing = {
        vendor,
        forms: exporter.signatures,
        secrets: openSecrets(exporter, keyRing, now),
        body,
        id: event.id,
        timestamp: now,
    };
    const headers = messageHeaders(event.kind, signing, openHeaders(exporter, keyRing));
    return { exporterId: exporter.id, url: exporter.url, trust: exporter.trust, headers, body, newConnection: singleAttempt };
}

function outcomeToRecord(claim: Claim, outcome: Outcome, { clock, random, breakerAfter }: WebhooksContext): RecordedOutcome {
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
