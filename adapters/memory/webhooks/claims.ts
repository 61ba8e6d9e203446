import type { Claim, ClaimRequest, HandedOut, SweepOptions, SweepResult } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { type BegunAttempt, RESERVATION_TIMES } from '../../../lib/webhooks/dispatching/reservations.ts';
import { FAULTS } from '../../../lib/webhooks/outcomes/breaker.ts';
import { INTERRUPTIONS } from '../../../lib/webhooks/outcomes/outcome.ts';
import { interrupt, move, openAttempt, retryAfterFault } from './delivery-transitions.ts';
import { asExporter, type DeliveryRow, type ExporterRow, type HeldClaim, isSentTo, later, type WebhookState } from './webhook-state.ts';

/** As `DeliveryStore.claim` says. */
export function claim(
    state: WebhookState,
    requests: readonly ClaimRequest[],
    session: string | null,
    maxBytes: number = Number.POSITIVE_INFINITY,
): readonly (Claim | null)[] {
    const claims: (Claim | null)[] = [];
    const current = session === null || isCurrent(state, session);
    let total = 0;
    for (const request of requests) {
        const bytes = current ? claimableBytes(state, request) : 0;
        if (total > 0 && bytes > 0 && total + bytes > maxBytes) {
            break;
        }
        total += bytes;
        claims.push(claimOne(state, request, session, current));
    }
    return claims;
}

/** Whether it is known, and sends with the settings of the deployment as far as it says so. */
function isCurrent({ sessions, deployment }: WebhookState, id: string): boolean {
    const known = sessions.get(id)?.session;
    return known !== undefined && (known.generation === undefined || known.generation === deployment.generation);
}

/** Those of its body, 0 when it would not be claimed. */
function claimableBytes(state: WebhookState, request: ClaimRequest): number {
    const row = state.deliveries.get(request.deliveryId);
    const exporter = state.exporters.get(row?.exporterId ?? '');
    if (row === undefined || !isClaimable(row, request)) {
        return 0;
    }
    return exporter !== undefined && maySend(row, exporter, request) ? Buffer.byteLength(row.message?.body ?? row.event.body) : 0;
}

function maySend({ priority }: DeliveryRow, exporter: ExporterRow, { collector = exporter.collector }: ClaimRequest): boolean {
    return (priority === 0 || isSentTo(exporter)) && collector === exporter.collector;
}

/** As `DeliveryStore.claim` says, for one delivery. */
function claimOne(state: WebhookState, request: ClaimRequest, session: string | null, current: boolean): Claim | null {
    const { deliveryId, token, duration, reservation, keepsReservation = false } = request;
    const now = state.clock();
    const row = state.deliveries.get(deliveryId);
    const exporter = state.exporters.get(row?.exporterId ?? '');
    if (row === undefined || exporter === undefined || !isClaimable(row, request)) {
        return null;
    }

    const singleAttempt = row.priority === 0;
    const allowed = current && maySend(row, exporter, request);
    const read = {
        deliveryId,
        token: keepsReservation ? (reservation as string) : token,
        claimedAt: now,
        attempt: row.attempts + 1,
        attemptSinceReplay: row.attemptsSinceReplay + 1,
        singleAttempt,
        event: { ...structuredClone(row.event), ...(row.message !== null && { body: '' }) },
        message: structuredClone(row.message),
        exporter: asExporter(exporter),
        generation: exporter.generation,
    };
    if (keepsReservation) {
        return allowed ? read : null;
    }
    if (!allowed) {
        move(state, row, 'pending', now);
        return null;
    }

    openAttempt(state, row, token, now);
    row.claim = { token, session, expiresAt: later(now, duration) };
    return read;
}

function isClaimable(
    { state, reservation: held }: DeliveryRow,
    { reservation, keepsReservation }: Pick<ClaimRequest, 'reservation' | 'keepsReservation'>,
): boolean {
    return state === 'queued' && (held === null ? keepsReservation !== true : held.token === reservation);
}

/** As `DeliveryStore.sweep` says. */
export function sweep(state: WebhookState, { requeueAfter, limit, endedOnly = false }: SweepOptions): SweepResult {
    const now = state.clock();
    const rows = [...state.active];
    const expired = rows
        .filter(({ claim }) => claim !== null && (endedOnly ? hasEnded(state, claim) : hasRunOut(state, claim, now)))
        .slice(0, 10 * limit);
    for (const row of expired) {
        interrupt(row, now, INTERRUPTIONS.expired);
        expire(state, row, now);
    }

    for (const row of rows.filter((row) => isUnbegun(state, row, endedOnly, now)).slice(0, limit)) {
        move(state, row, 'pending', now);
        row.takenBack = true;
    }

    const queuedBefore = later(now, -requeueAfter);
    const lost = rows.filter((row) => row.state === 'queued' && row.queuedAt !== null && row.queuedAt < queuedBefore);
    return {
        lost: lost.slice(0, limit).map((row) => requeue(state, row, now)),
        poisoned: expired.filter((row) => row.state === 'poisoned').map(({ id }) => id),
    };
}

/** Whether nobody has begun it under the claim that it was handed out with, as all sessions have said that may have. */
function isUnbegun({ sessions }: WebhookState, { reservation }: DeliveryRow, endedOnly: boolean, now: Date): boolean {
    const speaking = [...sessions.values()].filter(({ until }) => endedOnly || until > now);
    const spoken = Math.min(now.getTime(), ...speaking.map(({ spokenAt }) => spokenAt.getTime()));
    return reservation !== null && reservation.beginBy + RESERVATION_TIMES.reportedAfter < spoken;
}

function hasEnded({ sessions }: WebhookState, { session }: HeldClaim): boolean {
    return session !== null && !sessions.has(session);
}

function hasRunOut({ sessions }: WebhookState, { session, expiresAt }: HeldClaim, now: Date): boolean {
    return expiresAt <= now || (session !== null && (sessions.get(session)?.until ?? now) <= now);
}

function expire(state: WebhookState, row: DeliveryRow, now: Date): void {
    row.expiredClaims += 1;
    if (row.priority === 0) {
        move(state, row, 'exhausted', now);
    } else if (row.expiredClaims >= FAULTS.poisonedAfter) {
        move(state, row, 'poisoned', now);
    } else {
        move(state, row, 'pending', now);
        retryAfterFault(row, now);
    }
}

function requeue(state: WebhookState, row: DeliveryRow, now: Date): HandedOut {
    row.queuedAt = now;
    const collector = state.exporters.get(row.exporterId)?.collector ?? row.collector;
    const { id: deliveryId, exporterId, attempts, priority } = row;
    return { deliveryId, exporterId, collector, attempt: attempts + 1, singleAttempt: priority === 0, reservation: null };
}

/** What goes on under a claim that was handed out is from now on like what was claimed. */
export function nameBegun(state: WebhookState, { deliveryId, token, claimedAt, duration }: BegunAttempt, session: string, now: Date): void {
    const row = state.deliveries.get(deliveryId);
    if (row?.reservation?.token === token) {
        const startedAt = claimedAt < now ? claimedAt : now;
        openAttempt(state, row, token, startedAt);
        row.claim = { token, session, expiresAt: later(startedAt, duration) };
    }
}
