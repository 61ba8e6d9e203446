import type { RecordedOutcome } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { SHARES } from '../../../lib/webhooks/dispatching/slot-shares.ts';
import { type BreakerRules, probeDelay, STOPPED_FAILING } from '../../../lib/webhooks/outcomes/breaker.ts';
import { type AttemptRow, type ExporterRow, later, resubscribe, type WebhookState } from './webhook-state.ts';

/** What an outcome means for the health of its exporter, as `DeliveryStore.recordOutcomes` says. */
export function applyHealth(
    state: WebhookState,
    attempt: AttemptRow,
    { exporterId, outcome, health, pause, stopReason }: RecordedOutcome,
    rules: BreakerRules,
): void {
    const now = state.clock();
    // Removing an exporter ends all claims on its deliveries.
    const exporter = state.exporters.get(exporterId) as ExporterRow;
    const before = { ...exporter };
    if (health !== 'none' || pause !== null || stopReason !== null) {
        exporter.lastOutcome = { code: outcome.code, detail: outcome.detail, at: now };
    }
    if (health !== 'none' && outcome.timings.total >= SHARES.slowAfter) {
        exporter.answersSlowly = true;
    } else if (health === 'success' && outcome.timings.total <= SHARES.quickWithin) {
        exporter.answersSlowly = false;
    }

    if (health === 'success') {
        applySuccess(exporter, attempt.startedAt, now, rules);
    } else if (health === 'failure' && countsAlone(exporter, attempt.startedAt, now, rules)) {
        applyFailure(exporter, attempt.startedAt, now, rules);
    }
    if (pause !== null) {
        const until = later(now, pause);
        exporter.pausedUntil = exporter.pausedUntil !== null && exporter.pausedUntil > until ? exporter.pausedUntil : until;
        exporter.failingSince ??= now;
    }

    const failedTooLong = exporter.failingSince !== null && now.getTime() - exporter.failingSince.getTime() >= rules.stopAfter;
    // Who only asks to be left alone takes nothing either.
    const reason = stopReason ?? ((health !== 'none' || pause !== null) && failedTooLong ? STOPPED_FAILING : null);
    if (reason !== null && exporter.state === 'running') {
        resubscribe(state, exporter);
        Object.assign(exporter, { state: 'stopped', stopReason: reason, updatedAt: now, generation: exporter.generation + 1 });
    }
    noticeChange(state, before, exporter, health === 'success');
}

/** Keeps what the outcome has made of the exporter, if that is to be told. */
function noticeChange(state: WebhookState, before: ExporterRow, exporter: ExporterRow, succeeded: boolean): void {
    const { id: exporterId, name, collector, owner, consecutiveFailures: failures, stopReason: reason } = exporter;
    const stops = before.state === 'running' && exporter.state === 'stopped';
    const fails = before.probeAt === null && exporter.probeAt !== null;
    const recovers = succeeded && exporter.unwell && exporter.failingSince === null && exporter.pausedUntil === null;
    if (!stops && !fails && !recovers) {
        return;
    }

    exporter.unwell = stops || fails;
    const kind = stops ? 'exporter_stopped' : fails ? 'exporter_failing' : 'exporter_recovered';
    const failingSince = exporter.failingSince ?? before.failingSince;
    const lastOutcome = exporter.lastOutcome && { code: exporter.lastOutcome.code, detail: exporter.lastOutcome.detail };
    const facts = { name, collector, owner, failures, failingSince, reason, lastOutcome };
    state.noticed += 1;
    state.notices = [...state.notices, { id: state.newId(), position: state.noticed, exporterId, kind, at: state.clock(), ...facts }];
}

/**
 * The first success after a breaker was open, or a pause, begins a slow start; what waits for a retry becomes due under it. One of an
 * attempt that began before the end of the pause leaves it as it is: a receiver that limits its rate takes some and refuses others.
 */
function applySuccess(exporter: ExporterRow, startedAt: Date, now: Date, rules: BreakerRules): void {
    const endsPause = startedAfterPause(exporter, startedAt);
    const recovers = endsPause || exporter.consecutiveFailures >= rules.after;
    const grown = recovers ? 2 : exporter.slowStart === null ? null : exporter.slowStart + 1;
    Object.assign(exporter, { consecutiveFailures: 0, probeAt: null, failingSince: null });
    exporter.pausedUntil = endsPause ? null : exporter.pausedUntil;
    exporter.slowStart = grown === null || grown >= rules.window ? null : grown;
    exporter.recoveredAt = recovers ? now : exporter.recoveredAt;
}

/**
 * Of attempts that began before the last counted failure, or before an open breaker let its probe through, that failure speaks; not so one that is to come, from
 * before the clock was set back.
 */
function countsAlone(
    { failedAt, probeAt, consecutiveFailures }: ExporterRow,
    startedAt: Date,
    now: Date,
    { after }: BreakerRules,
): boolean {
    const probes = probeAt === null || consecutiveFailures < after || startedAt >= probeAt;
    return probes && (failedAt === null || failedAt > now || startedAt > failedAt);
}

/** A failure in a slow start, or of the probe after a pause, opens the breaker at once. */
function applyFailure(exporter: ExporterRow, startedAt: Date, now: Date, rules: BreakerRules): void {
    const endsPause = startedAfterPause(exporter, startedAt);
    const failures = exporter.consecutiveFailures + 1;
    exporter.consecutiveFailures = endsPause || exporter.slowStart !== null ? Math.max(failures, rules.after) : failures;
    exporter.pausedUntil = endsPause ? null : exporter.pausedUntil;
    exporter.failedAt = now;
    exporter.failingSince ??= now;
    const delay = probeDelay(exporter.consecutiveFailures, rules);
    if (delay !== null) {
        Object.assign(exporter, { probeAt: later(now, delay), slowStart: null, recoveredAt: null });
    }
}

function startedAfterPause({ pausedUntil }: ExporterRow, startedAt: Date): boolean {
    return pausedUntil !== null && startedAt >= pausedUntil;
}
