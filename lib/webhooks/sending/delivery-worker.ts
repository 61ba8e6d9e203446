import { type ReadyBatches, readyBatches } from '../../batched.ts';
import { type KeyRing, rememberingRing } from '../../keys/key-ring.ts';
import type { Claim, ClaimRequest, RecordedOutcome } from '../deliveries/delivery-store.ts';
import type { DeliveryJob, QueueWorker } from '../dispatching/delivery-queue.ts';
import type { Reservation } from '../dispatching/reservations.ts';
import { restAfter } from '../events/event-body.ts';
import { unsealAuthentication } from '../exporters/authentication.ts';
import type { StoredExporter } from '../exporters/exporter.ts';
import { knownUrl, unsealUrl } from '../exporters/sealed-url.ts';
import { outgoingBody } from '../messages/formatted-message.ts';
import { messageHeaders, unsealHeaders } from '../messages/message-headers.ts';
import type { Vendor } from '../messages/signature.ts';
import { unsealSecrets } from '../messages/signing-secret.ts';
import { type DeliveryEvent, deliveryEvent } from '../observing/emitted-events.ts';
import { type Post, untraced } from '../observing/tracing.ts';
import { resultOfError } from '../outcomes/attempt-result.ts';
import { FIRST_PROBE } from '../outcomes/breaker.ts';
import { type Outcome, unsentOutcome } from '../outcomes/outcome.ts';
import { DEFAULT_SCHEDULE, isSchedule, nextState } from '../outcomes/retry-schedule.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { attemptPace } from './attempt-pace.ts';
import type { RefusedResponse } from './http-exchange.ts';
import type { Message } from './http-sender.ts';
import { bodyBytes } from './message-cache.ts';
import { outcomeRecorder, STATEMENTS_AT_ONCE } from './outcome-recorder.ts';

/** Maximum number of claims that share one statement. */
const BATCH = 200;

/** Bytes of the bodies of tests that one statement may read even when memory is short: such a body has a few hundred. */
const BYTES_OF_TESTS = 65_536;

/**
 * Milliseconds for which a receiver is left alone that does not say for how long. A `Retry-After` of less than a second counts as none: as it is in
 * whole seconds, it is 0 or a date that has passed. If it were heeded, POSTs would follow each other at once, and each would use up a try of another
 * delivery.
 */
const DEFAULT_PAUSE: number = FIRST_PROBE;
const MIN_PAUSE = 1_000;

/** A claim that waits until there is memory for its body. */
interface WaitingClaim {
    readonly request: ClaimRequest;
    /** Empty when it is not known. */
    readonly exporterId: string;
    /** Whether it is the claim of a test, which does not wait for memory. */
    readonly singleAttempt: boolean;
    /** Whether it is to wait no longer: the reservation has run out, or may do so before there is memory. The delivery is then handed out again. */
    givesUp(): boolean;
}

/**
 * Sends the deliveries of a collector, which is a named pool of workers: claims, signs, posts, records. Every step may be repeated or lost without
 * harm: a job whose delivery cannot be claimed is somebody else's or done.
 */
export function deliveryWorker(context: WebhooksContext): (collector: string, concurrency: number) => Promise<QueueWorker> {
    const { queue, newId, claimDuration, dispatcher, session, reservations, messageCache, bodyMemory, random, onError } = context;
    const claims = claimBatches(context);
    const rememberingRingFor = rememberingRings(context.keyRing);
    const recorder = outcomeRecorder(context);
    const pace = attemptPace();

    async function deliver(job: DeliveryJob): Promise<void> {
        const { deliveryId, exporterId = '', reservation, singleAttempt } = job;
        // It waits before the claim, so that no attempt begins with settings from before the wait.
        await pace.whenMayBegin(job);
        // The queue has given the same job twice.
        if (reservation !== null && reservations.hasBegun(reservation)) {
            return;
        }

        const reserved = reservation === null || !mayBegin(reservation) ? null : await claimReserved({ ...job, reservation });
        if (reserved !== null) {
            session.attemptBegan(reserved);
            await send(reserved, reserved.claimedAt);
            reservations.end(reserved.token);
            return;
        }

        const replaced = reservation === null ? {} : { reservation: reservation.token };
        const claimed = await claims.add({
            request: { deliveryId, token: newId(), duration: claimDuration, ...replaced },
            exporterId,
            singleAttempt,
            // A delivery with a reservation does not wait for memory: it is given up, taken back, and handed out again.
            givesUp: () => reservation !== null && !singleAttempt && bodyMemory.allowance(exporterId) === 0,
        });
        if (claimed === null) {
            // Perhaps the deployment's settings have changed, and this process must stop sending.
            await context.member.checkSettings();
        } else {
            await send(claimed, null);
        }
    }

    function mayBegin(reservation: Reservation): boolean {
        return reservation.settings === context.member.generation() && reservations.inTime(reservation); // `settings` is a generation, too: see {@link Reservation}
    }

    /** What is needed to send under the reservation of a job; null when the attempt cannot begin under it any more. */
    async function claimReserved(job: DeliveryJob & { readonly reservation: Reservation }): Promise<Claim | null> {
        const atHand = messageCache.take(job, reservations.now() as Date);
        if (atHand !== null) {
            return atHand;
        }

        const { deliveryId, exporterId = '', reservation, singleAttempt } = job;
        const { token } = reservation;
        const request = { deliveryId, token, duration: claimDuration, reservation: token, keepsReservation: true };
        const read = await claims.add({ request, exporterId, singleAttempt, givesUp: () => !mayBegin(reservation) });
        if (read === null) {
            return null;
        }
        if (!mayBegin(reservation)) {
            bodyMemory.giveBack(read.exporter.id, bodyBytes(read));
            return null;
        }
        messageCache.addSettings(read);
        return { ...read, claimedAt: reservations.now() as Date };
    }

    /** @param begunAt When the attempt begins, if it is under a reservation; else null. */
    async function send(claim: Claim, begunAt: Date | null): Promise<void> {
        try {
            const rest = restAfter(claim.message?.body ?? claim.event.body);
            if (rest > 0) {
                await context.sleep(rest);
            }
            const keyRing = rememberingRingFor(claim.exporter);
            const outcome = await attempted(claim, keyRing, context);
            pace.ended(claim.exporter.id, outcome.code);
            const known = { ...outcomeToRecord(claim, outcome, { keyRing, random }), begunAt };
            const { stored: recorded, isInTime } = await recorder.record(known, claim);
            if (known.stopReason !== null) {
                // What was read ahead and still waits for its turn is not sent any more.
                void messageCache.forgetSettings(claim.exporter.id);
            }
            dispatcher.attemptEnded(claim.exporter, outcome.timings.total);
            context.notices.recorded(recorded);
            if (isInTime) {
                emit(deliveryEvent(claim, recorded)).catch(onError);
            }
        } finally {
            bodyMemory.giveBack(claim.exporter.id, bodyBytes(claim));
            context.tests.end(claim.deliveryId);
        }
    }

    /** Emits the event of an outcome to the application. What the application does with it must not disturb sending. */
    async function emit(event: DeliveryEvent): Promise<void> {
        await context.onEvent(event);
    }

    return (collector, concurrency) => queue.work(collector, deliver, { concurrency, onError });
}

/** Claims share statements. A claim waits while its exporter has all the bytes that it may have, without keeping others waiting. */
function claimBatches({
    deliveries,
    session,
    messageCache,
    bodyMemory,
    traces,
}: WebhooksContext): ReadyBatches<WaitingClaim, Claim | null> {
    /** Maximum number of bytes that the statements under way may read. */
    let expected = 0;

    /** The next claims: those that give up; else tests; else those whose exporters may take a body, the exporters with the fewest bytes first. */
    function next<Waiting extends { readonly item: WaitingClaim }>(
        waiting: readonly Waiting[],
        underWay: Iterable<Waiting>,
    ): readonly Waiting[] {
        const leaving = waiting.filter(({ item }) => item.givesUp());
        if (leaving.length > 0) {
            return leaving;
        }

        const busy = new Set(Array.from(underWay, ({ item }) => item.request.deliveryId));
        const free = waiting.filter(({ item: { request } }) => !busy.has(request.deliveryId));
        const tests = free.filter(({ item }) => item.singleAttempt);
        if (tests.length > 0) {
            return tests.slice(0, BATCH);
        }

        const ready = free.filter(({ item: { exporterId } }) => bodyMemory.allowance(exporterId, expected) > 0);
        return ready.sort((a, b) => bodyMemory.bytesOf(a.item.exporterId) - bodyMemory.bytesOf(b.item.exporterId)).slice(0, BATCH);
    }

    /** Claims in one statement. How much of it each exporter gets is not known before bodies are read: all together get the smallest of their allowances. */
    async function claim(waiting: readonly WaitingClaim[]): Promise<readonly (Claim | null)[]> {
        if (waiting.every(({ givesUp }) => givesUp())) {
            return waiting.map(() => null);
        }

        const maxBytes = Math.min(
            ...waiting.map(({ exporterId, singleAttempt }) => {
                return Math.max(bodyMemory.allowance(exporterId, expected), singleAttempt ? BYTES_OF_TESTS : 0);
            }),
        );
        const requests = waiting.map(({ request }) => request);
        expected += maxBytes;
        let claimed: readonly (Claim | null)[];
        try {
            claimed = await messageCache.duringRead(deliveries.claim(requests, session.id, maxBytes));
            for (const one of claimed) {
                if (one !== null) {
                    bodyMemory.take(one.exporter.id, bodyBytes(one));
                }
            }
        } finally {
            expected -= maxBytes;
        }
        return await traces.withTraceparents(claimed);
    }

    const claims = readyBatches<WaitingClaim, Claim | null>(claim, next, STATEMENTS_AT_ONCE);
    bodyMemory.whenFreed(claims.proceed);
    return claims;
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
async function attempted(claim: Claim, keyRing: KeyRing, context: WebhooksContext): Promise<Outcome> {
    const answer: AnswerHolder = { refused: null };
    const outcome = await traced(context, claim, (post) => attempt(claim, keyRing, context, { post, answer }));
    if (answer.refused !== null) {
        await context.responses.keep(claim, answer.refused, keyRing);
    }
    return outcome;
}

async function attempt(
    claim: Claim,
    keyRing: KeyRing,
    { sender, vendor, tracing, tests, responses }: WebhooksContext,
    { post, answer }: { readonly post: Post; readonly answer: AnswerHolder },
): Promise<Outcome> {
    const onRefused = responses.kept
        ? (response: RefusedResponse): void => {
              answer.refused = response;
          }
        : null;
    let message: Message;
    try {
        const made = messageOf(claim, keyRing, vendor, onRefused);
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
    vendor: Vendor,
    onRefused: NonNullable<Message['onRefused']> | null,
): Message {
    const { bytes: body, ...format } = outgoingBody(event, message, exporter, keyRing);
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

/** A test says nothing about the exporter's deliveries, and a fault nothing about the receiver. */
const NOTHING_LEARNED: Learned = { health: 'none', pause: null, stopReason: null };

function whatWasLearned({ code, status, retryAfter }: Outcome): Learned {
    if (code === 'interrupted') {
        return NOTHING_LEARNED;
    }

    if (code === 'rate_limited' || (status === 503 && retryAfter !== null)) {
        const saysHowLong = retryAfter !== null && retryAfter >= MIN_PAUSE;
        return { health: 'none', pause: saysHowLong ? retryAfter : DEFAULT_PAUSE, stopReason: null };
    }

    const stopReason = code === 'gone' ? 'The receiver answered 410 Gone' : null;
    return { health: code === 'delivered' ? 'success' : 'failure', pause: null, stopReason };
}
