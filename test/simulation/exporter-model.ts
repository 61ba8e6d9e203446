import { SETTINGS } from './simulated-process.ts';

/** What an outcome says of the receiver. Times in milliseconds of the simulation. */
export interface Heard {
    readonly code: string;
    readonly status: number | null;
    readonly retryAfter: number | null;
    /** When its attempt was claimed. */
    readonly claimedAt: number;
}

const FIRST_PROBE = 5_000;
const MAX_PROBE = 300_000;
const DEFAULT_PAUSE = 5_000;

/**
 * What is known of an exporter's receiver, written down from the rules once more: how many of its deliveries may be in flight. The
 * stores must never let more out.
 */
export class ExporterModel {
    running = true;
    removed = false;
    recoveredAt: number | null = null;
    private failures = 0;
    private failedAt: number | null = null;
    private failingSince: number | null = null;
    private probeAt: number | null = null;
    private pausedUntil: number | null = null;
    private slowStart: number | null = null;

    /** Somebody has started it. */
    start(): void {
        Object.assign(this, { running: true, recoveredAt: null, failures: 0, failedAt: null, failingSince: null });
        Object.assign(this, { probeAt: null, pausedUntil: null, slowStart: null });
    }

    /** How many of its deliveries, tests aside, may be in flight. */
    room(now: number): number {
        if (!this.running) {
            return 0;
        }
        if (this.pausedUntil !== null || this.failures >= SETTINGS.breakerAfter) {
            return [this.pausedUntil, this.probeAt].every((time) => time === null || time <= now) ? 1 : 0;
        }
        return Math.min(SETTINGS.window, this.slowStart ?? SETTINGS.window);
    }

    /** An outcome was recorded under its claim. */
    hear(heard: Heard, now: number): void {
        const { code, status, retryAfter, claimedAt } = heard;
        if (code === 'interrupted') {
            return;
        }

        const pauses = code === 'rate_limited' || (status === 503 && retryAfter !== null);
        if (pauses) {
            this.pausedUntil = Math.max(this.pausedUntil ?? 0, now + (retryAfter ?? DEFAULT_PAUSE));
            this.failingSince ??= now;
        } else if (code === 'delivered') {
            this.succeed(claimedAt, now);
        } else if ((this.failedAt === null || claimedAt > this.failedAt) && claimedAt >= (this.probeAt ?? 0)) {
            this.fail(claimedAt, now);
        }

        const tooLong = !pauses && this.failingSince !== null && now - this.failingSince >= SETTINGS.stopAfter;
        this.running &&= !(code === 'gone' || tooLong);
    }

    private succeed(claimedAt: number, now: number): void {
        const endsPause = this.pausedUntil !== null && claimedAt >= this.pausedUntil;
        const recovers = endsPause || this.failures >= SETTINGS.breakerAfter;
        const grown = recovers ? 2 : this.slowStart === null ? null : this.slowStart + 1;
        this.slowStart = grown === null || grown >= SETTINGS.window ? null : grown;
        this.recoveredAt = recovers ? now : this.recoveredAt;
        this.pausedUntil = endsPause ? null : this.pausedUntil;
        Object.assign(this, { failures: 0, probeAt: null, failingSince: null });
    }

    private fail(claimedAt: number, now: number): void {
        const endsPause = this.pausedUntil !== null && claimedAt >= this.pausedUntil;
        const opens = endsPause || this.slowStart !== null;
        this.failures = Math.max(this.failures + 1, opens ? SETTINGS.breakerAfter : 0);
        this.pausedUntil = endsPause ? null : this.pausedUntil;
        this.failedAt = now;
        this.failingSince ??= now;
        if (this.failures >= SETTINGS.breakerAfter) {
            this.probeAt = now + Math.min(MAX_PROBE, FIRST_PROBE * 2 ** (this.failures - SETTINGS.breakerAfter));
            Object.assign(this, { slowStart: null, recoveredAt: null });
        }
    }
}
