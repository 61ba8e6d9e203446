import type { ReadyBatches } from '../../batched.ts';
import { type KeyRing, rememberingRing } from '../../keys/key-ring.ts';
import type { Claim, RecordedOutcome } from '../deliveries/delivery-store.ts';
import type { DeliveryJob } from '../dispatching/delivery-queue.ts';
import type { Reservation } from '../dispatching/reservations.ts';
import { isLarge, restAfter } from '../events/event-body.ts';
import { unsealAuthentication } from '../exporters/authentication.ts';
import type { StoredExporter } from '../exporters/exporter.ts';
import { knownUrl, unsealUrl } from '../exporters/sealed-url.ts';
import { outgoingBody } from '../messages/formatted-message.ts';
import { messageHeaders, unsealHeaders } from '../messages/message-headers.ts';
import { unsealSecrets } from '../messages/signing-secret.ts';
import { type DeliveryEvent, deliveryEvent } from '../observing/emitted-events.ts';
import { type Post, untraced } from '../observing/tracing.ts';
import { resultOfError } from '../outcomes/attempt-result.ts';
import { FIRST_PROBE } from '../outcomes/breaker.ts';
import { INTERRUPTIONS, interrupted, type Outcome, unsentOutcome } from '../outcomes/outcome.ts';
import { DEFAULT_SCHEDULE, isSchedule, nextState } from '../outcomes/retry-schedule.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { attemptPace } from './attempt-pace.ts';
import { claimBatches, type ReadClaim, type WaitingClaim } from './claim-batches.ts';
import { isCurrent, isUnchanged } from './current-claims.ts';
import type { RefusedResponse } from './http-exchange.ts';
import type { Message } from './http-sender.ts';
import { type LateMessages, lateMessages } from './late-messages.ts';
import { bodyBytes } from './message-cache.ts';
import { outcomeRecorder } from './outcome-recorder.ts';

/**
 * Milliseconds for which a receiver is left alone that does not say for how long. A `Retry-After` of less than a second counts as none: as it is in
 * whole seconds, it is 0 or a date that has passed. If it were heeded, POSTs would follow each other at once, and each would use up a try of another
 * delivery.
 */
const DEFAULT_PAUSE: number = FIRST_PROBE;
const MIN_PAUSE = 1_000;

/** Whether a worker is being stopped: it begins no more attempts. */
export interface Stopping {
    readonly isStopping: boolean;
}

/** What sends the deliveries of jobs. */
export interface DeliveryWorker {
    /** Sends the delivery of a job. Resolves with whether the job is done; else the worker has stopped before an attempt began. */
    deliver(job: DeliveryJob, worker: Stopping): Promise<boolean>;
    /** What waits looks whether its worker is being stopped. */
    stop(): void;
}

/**
 * Sends deliveries: claims, signs, posts, records. Every step may be repeated or lost without harm: a job whose delivery cannot be claimed is
 * somebody else's or done.
 */
export function deliveryWorker(engine: WebhooksContext): DeliveryWorker {
    const context = { ...engine, late: lateMessages(engine) };
    const { newId, claimDuration, dispatcher, session, reservations, messageCache, bodyMemory, random, onError } = context;
    const claims = claimBatches(context);
    const claimReserved = reservedClaims(claims, context);
    const rememberingRingFor = rememberingRings(context.keyRing);
    const recorder = outcomeRecorder(context);
    const pace = attemptPace();

    async function deliver(job: DeliveryJob, worker: Stopping): Promise<boolean> {
        const { deliveryId, collector, exporterId = '', reservation, singleAttempt } = job;
        // It waits before the claim, so that no attempt begins with settings from before the wait.
        await pace.whenMayBegin(job);
        // The queue has given the same job twice.
        if (reservation !== null && reservations.hasBegun(reservation)) {
            return true;
        }
        if (worker.isStopping) {
            return false;
        }

        const reserved = await claimReserved(job, worker);
        if (reserved !== null) {
            session.attemptBegan(reserved);
            await send(reserved, reserved.claimedAt);
            reservations.end(reserved.token);
            return true;
        }

        const replaced = reservation === null ? {} : { reservation: reservation.token };
        const claimed = await claims.add({
            request: { deliveryId, collector, token: newId(), duration: claimDuration, ...replaced },
            exporterId,
            singleAttempt,
            // A delivery with a reservation does not wait for memory: it is given up, taken back, and handed out again.
            givesUp: () => worker.isStopping || (reservation !== null && !singleAttempt && bodyMemory.allowance(exporterId) === 0),
        });
        if (claimed !== null) {
            await rested(claimed, context);
            await send(claimed, null, (await isCurrent(claimed, context)) ? attempted : begunTooLate);
        } else if (!worker.isStopping) {
            // Perhaps the deployment's settings have changed, and this process must stop sending.
            await context.member.checkSettings();
        }
        return claimed !== null || !worker.isStopping;
    }

    /** @param begunAt When the attempt begins, if it is under a reservation; else null. */
    async function send(claim: Claim, begunAt: Date | null, attempting: typeof attempted = attempted): Promise<void> {
        try {
            const keyRing = rememberingRingFor(claim.exporter);
            const outcome = await attempting(claim, keyRing, context);
            pace.ended(claim.exporter.id, { code: outcome.code, took: outcome.timings.total });
            const known = { ...outcomeToRecord(claim, outcome, { keyRing, random }), begunAt };
            const { stored: recorded, isInTime } = await recorder.record(known, claim);
            if (known.stopReason !== null) {
                // What was read ahead and still waits for its turn is not sent any more.
                void messageCache.forgetSettings(claim.exporter.id);
            }
            dispatcher.attemptEnded(claim.exporter, outcome.timings.total);
            context.notices.recorded(recorded);
            if (isInTime) {
                emit(deliveryEvent(claim, recorded), context).catch(onError);
            }
        } finally {
            bodyMemory.giveBack(claim.exporter.id, bodyBytes(claim));
            context.tests.end(claim.deliveryId);
        }
    }

    return { deliver, stop: claims.proceed };
}

type ReservedJob = DeliveryJob & { readonly reservation: Reservation };

const isReserved = (job: DeliveryJob): job is ReservedJob => job.reservation !== null;

/** What is needed to send under the reservation of a job; null when it has none, and when the attempt cannot begin under it any more. */
function reservedClaims(claims: ReadyBatches<WaitingClaim, ReadClaim | null>, context: WebhooksContext) {
    const { claimDuration, messageCache, bodyMemory, reservations } = context;

    async function read(
        { deliveryId, collector, exporterId = '', singleAttempt, reservation }: ReservedJob,
        worker: Stopping,
    ): Promise<Claim | null> {
        const { token } = reservation;
        const request = { deliveryId, collector, token, duration: claimDuration, reservation: token, keepsReservation: true };
        const givesUp = (): boolean => worker.isStopping || !mayBegin(reservation, context);
        return await claims.add({ request, exporterId, singleAttempt, givesUp });
    }

    return async (job: DeliveryJob, worker: Stopping): Promise<Claim | null> => {
        if (!(isReserved(job) && mayBegin(job.reservation, context))) {
            return null;
        }
        const atHand = messageCache.take(job, reservations.now() as Date);
        if (atHand !== null && !needsRest(atHand)) {
            return atHand;
        }

        const claim = atHand ?? (await read(job, worker));
        if (claim === null) {
            return null;
        }
        await rested(claim, context);
        if (mayBegin(job.reservation, context) && messageCache.holds(claim)) {
            return { ...claim, claimedAt: reservations.now() as Date };
        }
        bodyMemory.giveBack(claim.exporter.id, bodyBytes(claim));
        return null;
    };
}

/** In place of {@link attempted}. */
const begunTooLate = async (): Promise<Outcome> => interrupted(0, INTERRUPTIONS.late);

const bodyOf = ({ event, message }: Claim): string => message?.body ?? event.body;
const needsRest = (claim: Claim): boolean => isLarge(bodyOf(claim));

/** Before an attempt begins, so that it begins with nothing that was read before the rest and has changed since. */
async function rested(claim: Claim, { sleep }: WebhooksContext): Promise<void> {
    if (needsRest(claim)) {
        await sleep(restAfter(bodyOf(claim)));
    }
}

/** Emits the event of an outcome to the application. What the application does with it must not disturb sending. */
async function emit(event: DeliveryEvent, { onEvent }: WebhooksContext): Promise<void> {
    await onEvent(event);
}

/** Whether an attempt may begin under the reservation. That tells, too, that the deployment's settings are those of this process. */
function mayBegin(reservation: Reservation, { member, reservations }: Pick<WebhooksContext, 'member' | 'reservations'>): boolean {
    // `settings` is a generation, too: see {@link Reservation}
    const may = reservation.settings === member.generation() && reservations.inTime(reservation);
    if (may) {
        member.settingsHeld();
    }
    return may;
}

/** Key rings, one for each exporter, that remember what they have unsealed: it is unsealed once, and kept for as long as the exporter's settings are. */
function rememberingRings(keyRing: KeyRing): (exporter: StoredExporter) => KeyRing {
    const rings = new WeakMap<StoredExporter, KeyRing>();
    return (exporter) => {
        const ring = rings.get(exporter) ?? rememberingRing(keyRing);
        rings.set(exporter, ring);
        return ring;
    };
}

/** Holds the answer of the receiver, if it was no 2xx and is kept. */
interface AnswerHolder {
    refused: RefusedResponse | null;
}

function traced({ tracing }: WebhooksContext, claim: Claim, run: (post: Post) => Promise<Outcome>): Promise<Outcome> {
    return tracing === null ? run(untraced) : tracing.attempting(claim, run);
}

/** The outcome of an attempt, after an answer that was no 2xx was stored. */
async function attempted(claim: Claim, keyRing: KeyRing, context: WebhooksContext & { readonly late: LateMessages }): Promise<Outcome> {
    const answer: AnswerHolder = { refused: null };
    const outcome = await traced(context, claim, (post) => {
        return context.late.attempted(claim, async (ready) => {
            // To make a message takes its time.
            const mayBegin = ready === claim || claim.singleAttempt || (await isUnchanged(claim, context));
            return mayBegin ? await attempt(ready, keyRing, context, { post, answer }) : await begunTooLate();
        });
    });
    if (answer.refused !== null) {
        await context.responses.keep(claim, answer.refused, keyRing);
    }
    return outcome;
}

async function attempt(
    claim: Claim,
    keyRing: KeyRing,
    context: WebhooksContext,
    { post, answer }: { readonly post: Post; readonly answer: AnswerHolder },
): Promise<Outcome> {
    const { sender, tracing, tests, responses } = context;
    const onRefused = responses.kept
        ? (response: RefusedResponse): void => {
              answer.refused = response;
          }
        : null;
    let message: Message;
    try {
        const made = messageOf(claim, keyRing, context, onRefused);
        // the steps of a test are shown while it goes on
        message = claim.singleAttempt ? { ...made, progress: tests.begin(claim.deliveryId) } : made;
    } catch (error) {
        return unsentOutcome(resultOfError(error));
    }

    const sendsTraceparent = tracing?.options.sendTraceparent === true;
    return await post(message.url, (traceparent) => sender.send(sendsTraceparent ? withTraceparent(message, traceparent) : message));
}

/** Adds the header `traceparent`, unless the exporter has one of its own. */
function withTraceparent(message: Message, traceparent: string | null): Message {
    const isGiven = message.headers.some(([name]) => name.toLowerCase() === 'traceparent');
    return traceparent === null || isGiven ? message : { ...message, headers: [...message.headers, ['traceparent', traceparent]] };
}

function messageOf(
    { event, message, exporter, singleAttempt, claimedAt }: Claim,
    keyRing: KeyRing,
    { vendor }: WebhooksContext,
    onRefused: NonNullable<Message['onRefused']> | null,
): Message {
    const { bytes: body, ...format } = outgoingBody(event, message, exporter, { keyRing });
    const signing = {
        vendor,
        forms: exporter.signatures,
        secrets: unsealSecrets(exporter, keyRing, claimedAt),
        body,
        id: event.id,
        timestamp: claimedAt,
    };
    const headers = messageHeaders(event.kind, signing, format, unsealHeaders(exporter, keyRing));
    const url = unsealUrl(exporter, keyRing);
    const authentication = unsealAuthentication(exporter, keyRing);
    const { id: exporterId, owner, trust } = exporter;
    return { exporterId, owner, url, trust, headers, authentication, body, newConnection: singleAttempt, onRefused };
}

function outcomeToRecord(
    claim: Claim,
    outcome: Outcome,
    { keyRing, random }: Pick<WebhooksContext, 'keyRing' | 'random'>,
): Omit<RecordedOutcome, 'begunAt'> {
    const { deliveryId, token, exporter, attemptSinceReplay, singleAttempt } = claim;
    const stored: unknown = exporter.schedule ?? DEFAULT_SCHEDULE;
    const schedule = isSchedule(stored) ? stored : DEFAULT_SCHEDULE;
    const url = knownUrl(exporter, keyRing) ?? '';
    const next = nextState({ outcome, url, schedule, attemptSinceReplay, singleAttempt, random });
    const needsSchedule = next.state === 'pending' && next.delay !== 'fault';
    return {
        deliveryId,
        exporterId: exporter.id,
        token,
        ...(needsSchedule && schedule !== stored ? endedUnscheduled(outcome) : { outcome, next }),
        ...(singleAttempt ? NOTHING_LEARNED : whatWasLearned(outcome)),
    };
}

/** Ends a delivery whose next try cannot be reckoned. The detail still tells what the receiver did. */
function endedUnscheduled({ detail, ...outcome }: Outcome): Pick<RecordedOutcome, 'outcome' | 'next'> {
    const reason = `${detail}; the stored schedule of the exporter is not a list of delays`;
    return { outcome: { ...outcome, code: 'invalid_exporter', detail: reason }, next: { state: 'exhausted' } };
}

type Learned = Pick<RecordedOutcome, 'health' | 'pause' | 'stopReason'>;

/** A test says nothing about the exporter's deliveries, and what was not sent nothing about the receiver. */
const NOTHING_LEARNED: Learned = { health: 'none', pause: null, stopReason: null };

function whatWasLearned({ code, status, retryAfter }: Outcome): Learned {
    if (code === 'interrupted' || code === 'invalid_message') {
        return NOTHING_LEARNED;
    }

    if (code === 'rate_limited' || (status === 503 && retryAfter !== null)) {
        const saysHowLong = retryAfter !== null && retryAfter >= MIN_PAUSE;
        return { health: 'none', pause: saysHowLong ? retryAfter : DEFAULT_PAUSE, stopReason: null };
    }

    const stopReason = code === 'gone' ? 'The receiver answered 410 Gone' : null;
    return { health: code === 'delivered' ? 'success' : 'failure', pause: null, stopReason };
}
