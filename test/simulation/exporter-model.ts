import { SHARES } from '../../lib/webhooks/shares.ts';
import { SETTINGS } from './simulated-process.ts';

/** What an outcome says of the receiver. Times in milliseconds of the simulation. */
export interface Heard {
    readonly code: string;
    readonly status: number | null;
    readonly retryAfter: number | null;
    /** When its attempt was claimed. */
    readonly claimedAt: number;
}

/** What the messages of an exporter are made of. */
export interface ExporterSettings {
    readonly url: string;
    readonly collector: string;
    /** Milliseconds. */
    readonly schedule: readonly number[];
    /** The value of its own header, null without one. */
    readonly header: string | null;
    /** The current one first, then those that it has taken the place of, which sign until their end. */
    readonly secrets: readonly { readonly secret: string; readonly until: number }[];
}

/** The name of the header of an exporter's own. */
export const OWN_HEADER = 'X-Own';

/** So many milliseconds after a change of secret the former one is still signed with. */
const OVERLAP = 86_400_000;

const FIRST_PROBE = 5_000;
const MAX_PROBE = 300_000;
const DEFAULT_PAUSE = 5_000;

/**
 * What is known of an exporter's receiver, written down from the rules once more: how many of its deliveries may be in flight. The
 * stores must never let more out.
 */
export class ExporterModel {
    /** It gets the events of an order key one after another. */
    readonly ordered: boolean;
    running = true;
    /** An outcome has stopped it: what is accepted for it is held. */
    stoppedByOutcome = false;
    removed = false;
    /** Its answers take long, as far as is known. A new one counts as slow. */
    slow = true;
    recoveredAt: number | null = null;
    private failures = 0;
    private failedAt: number | null = null;
    private failingSince: number | null = null;
    private probeAt: number | null = null;
    private pausedUntil: number | null = null;
    private slowStart: number | null = null;
    settings: ExporterSettings;
    /** What it was set to before, the last first. */
    private former: readonly { readonly settings: ExporterSettings; readonly until: number }[] = [];

    constructor(settings: Omit<ExporterSettings, 'secrets'>, secret: string, ordered: boolean) {
        this.ordered = ordered;
        this.settings = { ...settings, secrets: [{ secret, until: Number.POSITIVE_INFINITY }] };
    }

    /** Somebody has changed its settings. */
    change(settings: Omit<ExporterSettings, 'secrets'>, secret: string, now: number): void {
        const [current, ...former] = this.settings.secrets;
        const ended = current === undefined ? [] : [{ ...current, until: now + OVERLAP }];
        const others = [...ended, ...former].filter((one) => one.secret !== secret);
        const secrets = secret === current?.secret ? this.settings.secrets : [{ secret, until: Number.POSITIVE_INFINITY }, ...others];
        this.former = [{ settings: this.settings, until: now }, ...this.former];
        this.settings = { ...settings, secrets };
    }

    /** What it has been set to since then, the last first. */
    settingsSince(time: number): readonly ExporterSettings[] {
        return [this.settings, ...this.former.filter(({ until }) => until >= time).map(({ settings }) => settings)];
    }

    /** An attempt has taken so many milliseconds, of which the receiver took so many; null when it did not answer. */
    answered(total: number, ofReceiver: number | null, delivered: boolean): void {
        if (Math.max(total, ofReceiver ?? 0) >= SHARES.slowAfter) {
            this.slow = true;
        } else if (delivered && total <= SHARES.quickWithin) {
            this.slow = false;
        }
    }

    /** Somebody has started it. */
    start(): void {
        Object.assign(this, { running: true, stoppedByOutcome: false, recoveredAt: null, failures: 0, failedAt: null, failingSince: null });
        Object.assign(this, { probeAt: null, pausedUntil: null, slowStart: null });
    }

    /** Somebody has stopped it. */
    stop(): void {
        Object.assign(this, { running: false, stoppedByOutcome: false });
    }

    /** How many of its deliveries, tests aside, may be in flight. */
    room(now: number, window: number): number {
        if (!this.running) {
            return 0;
        }
        if (this.pausedUntil !== null || this.failures >= SETTINGS.breakerAfter) {
            return [this.pausedUntil, this.probeAt].every((time) => time === null || time <= now) ? 1 : 0;
        }
        return Math.min(window, this.slowStart ?? window);
    }

    /** An outcome was recorded under its claim. */
    hear(heard: Heard, now: number, window: number): void {
        const { code, status, retryAfter, claimedAt } = heard;
        if (code === 'interrupted') {
            return;
        }

        const pauses = code === 'rate_limited' || (status === 503 && retryAfter !== null);
        if (pauses) {
            this.pausedUntil = Math.max(this.pausedUntil ?? 0, now + (retryAfter ?? DEFAULT_PAUSE));
            this.failingSince ??= now;
        } else if (code === 'delivered') {
            this.succeed(claimedAt, now, window);
        } else if ((this.failedAt === null || claimedAt > this.failedAt) && claimedAt >= (this.probeAt ?? 0)) {
            this.fail(claimedAt, now);
        }

        const tooLong = !pauses && this.failingSince !== null && now - this.failingSince >= SETTINGS.stopAfter;
        if (this.running && (code === 'gone' || tooLong)) {
            Object.assign(this, { running: false, stoppedByOutcome: true });
        }
    }

    private succeed(claimedAt: number, now: number, window: number): void {
        const endsPause = this.pausedUntil !== null && claimedAt >= this.pausedUntil;
        const recovers = endsPause || this.failures >= SETTINGS.breakerAfter;
        const grown = recovers ? 2 : this.slowStart === null ? null : this.slowStart + 1;
        this.slowStart = grown === null || grown >= window ? null : grown;
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
