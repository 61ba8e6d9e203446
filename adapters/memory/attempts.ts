import { INTERRUPTIONS } from '../../lib/webhooks/interrupted.ts';
import type { Claim, ClaimRequest, Dispatched, Settlement, SweepOptions, Swept } from '../../lib/webhooks/store.ts';
import { asExporter, type DeliveryRow, move, takeClaim, type WebhookState } from './webhook-state.ts';

/** As `DeliveryStore.claim` says, for one delivery. */
export function claim(state: WebhookState, { deliveryId, token, now, expiresAt }: ClaimRequest): Claim | null {
    const row = state.deliveries.get(deliveryId);
    const exporter = state.exporters.get(row?.exporterId ?? '');
    if (row?.state !== 'queued' || exporter === undefined) {
        return null;
    }

    const single = row.priority === 0;
    if (!single && exporter.state !== 'running') {
        move(state, row, 'pending', now);
        return null;
    }

    row.attempts += 1;
    row.round += 1;
    row.claim = { token, expiresAt };
    row.history.push({ number: row.attempts, token, startedAt: now, finishedAt: null, outcome: null, lost: false, late: false });
    move(state, row, 'sending', now);
    const { attempts, round, event } = row;
    return { deliveryId, token, attempt: attempts, round, single, event: structuredClone(event), exporter: asExporter(exporter) };
}

/** As `DeliveryStore.settle` says, for one outcome. */
export function settle(state: WebhookState, settlement: Settlement): boolean {
    const row = state.deliveries.get(settlement.deliveryId);
    const attempt = row?.history.find(({ token }) => token === settlement.token);
    if (row === undefined || attempt === undefined) {
        return false;
    }

    const held = row.claim?.token === settlement.token;
    if (held || (attempt.lost && !attempt.late)) {
        attempt.finishedAt = settlement.finishedAt;
        attempt.outcome = structuredClone(settlement.outcome);
        attempt.late = !held;
    }
    if (held) {
        applyNextStep(state, row, settlement);
        applyHealth(state, settlement);
    }
    return held;
}

function applyNextStep(state: WebhookState, row: DeliveryRow, { next, outcome, finishedAt }: Settlement): void {
    move(state, row, next.state, finishedAt);
    row.lastCode = outcome.code;
    if (next.state === 'pending') {
        row.dueAt = next.dueAt;
        row.priority = row.priority === 0 ? 0 : 2;
    }
}

function applyHealth(state: WebhookState, { exporterId, health, probeAt, stopReason, finishedAt }: Settlement): void {
    const exporter = state.exporters.get(exporterId);
    if (exporter === undefined) {
        return;
    }

    if (health === 'success') {
        Object.assign(exporter, { consecutiveFailures: 0, probeAt: null });
    } else if (health === 'failure') {
        exporter.consecutiveFailures += 1;
        exporter.probeAt = probeAt ?? exporter.probeAt;
    }
    if (stopReason !== null && exporter.state === 'running') {
        Object.assign(exporter, { state: 'stopped', stopReason, updatedAt: finishedAt });
    }
}

/** As `DeliveryStore.sweep` says. */
export function sweep(state: WebhookState, { now, queuedBefore, limit }: SweepOptions): Swept {
    const rows = [...state.unfinished];
    const expired = rows.filter(({ claim }) => claim !== null && claim.expiresAt <= now).slice(0, limit);
    for (const row of expired) {
        takeClaim(row, now, INTERRUPTIONS.expired);
        row.dueAt = now;
        move(state, row, row.priority === 0 ? 'exhausted' : 'pending', now);
        row.priority = row.priority === 0 ? 0 : 2;
    }

    const forgotten = rows.filter((row) => row.state === 'queued' && row.queuedAt !== null && row.queuedAt < queuedBefore);
    return {
        requeue: forgotten.slice(0, limit).map((row) => requeue(state, row, now)),
        interrupted: expired.length,
        exhausted: expired.filter(({ state }) => state === 'exhausted').length,
    };
}

function requeue(state: WebhookState, row: DeliveryRow, now: Date): Dispatched {
    row.queuedAt = now;
    const collector = state.exporters.get(row.exporterId)?.collector ?? row.collector;
    return { deliveryId: row.id, collector, attempt: row.attempts + 1 };
}
