import { SHARES } from '../../lib/webhooks/dispatching/slot-shares.ts';
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

/** A change that somebody has asked for and has no answer to. */
interface AskedChange {
    /** What it was set to then. */
    readonly before: ExporterSettings;
    /** Whether no other was under way at any time since. */
    alone: boolean;
}

/** Whether it is no failure: it says nothing of how the receiver is, nor of how quick. */
export function asksForPause({ code, status, retryAfter }: Omit<Heard, 'claimedAt'>): boolean {
    return code === 'rate_limited' || (status === 503 && retryAfter !== null);
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
    /** What fails for good keeps back what has its order key. */
    holdsKeys = false;
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
    private rate: number | null = null;
    /** When deliveries were handed out since it has this rate. */
    private handedOutAt: readonly number[] = [];
    /** It is stopped or removed, and who has done so has the answer. */
    halted = false;
    /** What an attempt that begins may be made with, the last first: what it is set to, and what it was while nobody knows of a change. */
    private usable: readonly ExporterSettings[];
    private readonly underWay = new Set<AskedChange>();

    constructor(settings: Omit<ExporterSettings, 'secrets'>, secret: string, ordered: boolean) {
        this.ordered = ordered;
        this.settings = { ...settings, secrets: [{ secret, until: Number.POSITIVE_INFINITY }] };
        this.usable = [this.settings];
    }

    /** Has somebody change its settings or its state: once that is answered, nothing begins any more with what was before. */
    async asked(change: () => Promise<unknown>): Promise<void> {
        const own: AskedChange = { before: this.settings, alone: this.underWay.size === 0 };
        for (const other of this.underWay) {
            other.alone = false;
        }
        this.underWay.add(own);
        try {
            await change();
            this.told(own);
        } finally {
            this.underWay.delete(own);
        }
    }

    /** Of several changes at once it is not known which of them was first. */
    private told({ before, alone }: AskedChange): void {
        const last = this.usable.indexOf(alone ? this.settings : before);
        this.usable = this.usable.slice(0, last + 1 || undefined);
        this.halted ||= alone && (this.removed || !this.running);
    }

    /** Somebody has changed its settings. */
    change(settings: Omit<ExporterSettings, 'secrets'>, secret: string, now: number): void {
        const [current, ...former] = this.settings.secrets;
        const ended = current === undefined ? [] : [{ ...current, until: now + OVERLAP }];
        const others = [...ended, ...former].filter((one) => one.secret !== secret);
        const secrets = secret === current?.secret ? this.settings.secrets : [{ secret, until: Number.POSITIVE_INFINITY }, ...others];
        this.settings = { ...settings, secrets };
        this.usable = [this.settings, ...this.usable];
    }

    /** Somebody has said how many of its deliveries may be handed out in a second. */
    limit(rate: number | null): void {
        this.handedOutAt = rate === this.rate ? this.handedOutAt : [];
        this.rate = rate;
    }

    /** Whether it has a rate, so that what waits need not be handed out. */
    get isLimited(): boolean {
        return this.rate !== null;
    }

    /** So many of its deliveries are handed out. Whether its rate allows that: on the average over any time, and a second's worth more at once. */
    allows(count: number, now: number): boolean {
        const { rate } = this;
        if (rate === null || count === 0) {
            return true;
        }
        const handedOutAt = [...this.handedOutAt, ...Array<number>(count).fill(now)];
        this.handedOutAt = handedOutAt;
        return handedOutAt.every((since, index) => handedOutAt.length - index <= rate * (1 + (now - since) / 1_000));
    }

    /** What an attempt may be made with whose delivery was handed out when it was set to this, the last first. */
    settingsSince(settings: ExporterSettings | undefined): readonly ExporterSettings[] {
        const last = settings === undefined ? -1 : this.usable.indexOf(settings);
        return this.usable.slice(0, last + 1 || undefined);
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
        Object.assign(this, {
            running: true,
            halted: false,
            stoppedByOutcome: false,
            recoveredAt: null,
            failures: 0,
            failedAt: null,
            failingSince: null,
        });
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
        const { code, retryAfter, claimedAt } = heard;
        if (code === 'interrupted') {
            return;
        }

        const pauses = asksForPause(heard);
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
