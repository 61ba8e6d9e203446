import { FAULTS } from '../../lib/webhooks/breaker.ts';
import { INTERRUPTIONS } from '../../lib/webhooks/outcome.ts';
import type { Claim, ClaimRequest, Dispatched, SweepOptions } from '../../lib/webhooks/store.ts';
import {
    asExporter,
    type DeliveryRow,
    type HeldClaim,
    interrupt,
    later,
    move,
    retryAfterFault,
    type WebhookState,
} from './webhook-state.ts';

/** As `DeliveryStore.claim` says. */
export function claim(
    state: WebhookState,
    requests: readonly ClaimRequest[],
    session: string | null,
    maxBytes: number = Number.POSITIVE_INFINITY,
): readonly (Claim | null)[] {
    const claims: (Claim | null)[] = [];
    const generation = state.sessions.get(session ?? '')?.session.generation ?? state.deployment.generation;
    const current = generation === state.deployment.generation;
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

/** Those of its body, 0 when it would not be claimed. */
function claimableBytes(state: WebhookState, { deliveryId }: ClaimRequest): number {
    const row = state.deliveries.get(deliveryId);
    const exporter = state.exporters.get(row?.exporterId ?? '');
    const claimable = row?.state === 'queued' && (row.priority === 0 || exporter?.state === 'running');
    return claimable ? Buffer.byteLength(row.event.body) : 0;
}

/** As `DeliveryStore.claim` says, for one delivery. */
function claimOne(
    state: WebhookState,
    { deliveryId, token, duration }: ClaimRequest,
    session: string | null,
    current: boolean,
): Claim | null {
    const now = state.clock();
    const row = state.deliveries.get(deliveryId);
    const exporter = state.exporters.get(row?.exporterId ?? '');
    if (row?.state !== 'queued' || exporter === undefined) {
        return null;
    }

    const singleAttempt = row.priority === 0;
    if (!current || (!singleAttempt && exporter.state !== 'running')) {
        move(state, row, 'pending', now);
        return null;
    }

    row.attempts += 1;
    row.attemptsSinceReplay += 1;
    row.claim = { token, session, expiresAt: later(now, duration) };
    row.history.push({ number: row.attempts, token, startedAt: now, finishedAt: null, outcome: null, lost: false, late: false });
    move(state, row, 'sending', now);
    const { attempts, attemptsSinceReplay, event } = row;
    return {
        deliveryId,
        token,
        claimedAt: now,
        attempt: attempts,
        attemptSinceReplay: attemptsSinceReplay,
        singleAttempt,
        event: structuredClone(event),
        exporter: asExporter(exporter),
    };
}

/** As `DeliveryStore.sweep` says. */
export function sweep(state: WebhookState, { requeueAfter, limit, endedOnly = false }: SweepOptions): readonly Dispatched[] {
    const now = state.clock();
    const rows = [...state.unfinished];
    for (const row of rows
        .filter(({ claim }) => claim !== null && (endedOnly ? hasEnded(state, claim) : hasRunOut(state, claim, now)))
        .slice(0, limit)) {
        interrupt(row, now, INTERRUPTIONS.expired);
        expire(state, row, now);
    }

    const queuedBefore = later(now, -requeueAfter);
    const lost = rows.filter((row) => row.state === 'queued' && row.queuedAt !== null && row.queuedAt < queuedBefore);
    return lost.slice(0, limit).map((row) => requeue(state, row, now));
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

function requeue(state: WebhookState, row: DeliveryRow, now: Date): Dispatched {
    row.queuedAt = now;
    const collector = state.exporters.get(row.exporterId)?.collector ?? row.collector;
    return { deliveryId: row.id, collector, attempt: row.attempts + 1, singleAttempt: row.priority === 0 };
}
