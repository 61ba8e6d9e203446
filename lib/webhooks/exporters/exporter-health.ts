import type { ACTIVE_STATES } from '../deliveries/delivery-states.ts';
import type { Outcome } from '../outcomes/outcome.ts';
import type { Exporter } from './exporter.ts';

/**
 * How an exporter fares: what changes with its deliveries, tests aside. ({@link RecordedOutcome.health} is what one outcome does to the breaker.)
 * Times are the store's.
 */
export interface ExporterHealth {
    /** When all of this was so. */
    readonly at: Date;
    /**
     * - `closed`: sent to as its window allows.
     * - `open`: has failed too often in a row and gets one probe at a time.
     * - `paused`: its receiver wants to be left alone (429, `Retry-After`); then it gets one probe. Not what a person has paused: that is
     *   {@link Exporter.pausedAt}.
     * - `recovering`: its receiver has answered a probe with a 2xx, and its window grows.
     */
    readonly breaker: Breaker;
    /** When, since the last success, it first failed or its receiver first wanted to be left alone; null when neither has happened. */
    readonly failingSince: Date | null;
    /** When the next probe may be sent; null while it gets other deliveries too. */
    readonly nextProbe: Date | null;
    /** Until when its receiver wants to be left alone. It stays after that time until an attempt that began later has succeeded or failed; null otherwise. */
    readonly pausedUntil: Date | null;
    /** What the last attempt came to; null before the first. It is stored at most once a second: what came within a second after it may be missing. */
    readonly lastOutcome: (Pick<Outcome, 'code' | 'detail'> & { readonly at: Date }) | null;
    /** Deliveries in the queue or being sent. */
    readonly inFlight: number;
    readonly backlog: Backlog;
}

/** States of a breaker. */
export const BREAKERS = ['closed', 'open', 'paused', 'recovering'] as const;

/** State of a breaker. */
export type Breaker = (typeof BREAKERS)[number];

/**
 * Deliveries that wait for their time, for room or for another of their order key. The age of a first try is the time since it was accepted, or
 * replayed singly; that of a retry is the age of its event, or the time since it was replayed among many if it was not handed out since.
 */
export interface Backlog {
    /**
     * A store may stop to count at {@link MAX_COUNTED} first tries of an age, at as many of an age that wait for another of their order key, and at as
     * many retries.
     */
    readonly waiting: number;
    /** Whether more wait than were counted. */
    readonly more: boolean;
    /** Since when the oldest of those counted waits, null when nothing does. */
    readonly oldest: Date | null;
    /** How many of those counted are of each age. */
    readonly ages: Readonly<Record<BacklogAge, number>>;
}

/** How long a delivery has waited. */
export type BacklogAge = 'minute' | 'tenMinutes' | 'hour' | 'day' | 'older';

/** Each age with its upper bound in milliseconds, youngest first. A delivery has the first age that it fits. */
export const BACKLOG_AGES: readonly (readonly [age: BacklogAge, below: number])[] = [
    ['minute', 60_000],
    ['tenMinutes', 10 * 60_000],
    ['hour', 60 * 60_000],
    ['day', 24 * 60 * 60_000],
    ['older', Number.POSITIVE_INFINITY],
];

/** Up to how many deliveries are counted, so that a look at a long backlog stays a short one. */
export const MAX_COUNTED = 10_000;

/** How much there is to do, and how the exporters fare. */
export interface Overview {
    /** Active deliveries, which `held` ones are not; a store may stop to count at the limit that it is given. */
    readonly deliveries: Readonly<Record<(typeof ACTIVE_STATES)[number], number>>;
    /** Exporters that do not run, and of those that do how many have a breaker of each state. */
    readonly exporters: Readonly<Record<'stopped' | Breaker, number>>;
}

/** The overview, from exporters that were counted in groups of those that are alike. */
export function overviewOf(
    deliveries: readonly { readonly state: string; readonly count: number }[],
    exporters: readonly (BreakerColumns & { readonly running: boolean; readonly count: number })[],
): Overview {
    const of = (state: keyof Overview['deliveries']): number => deliveries.find((one) => one.state === state)?.count ?? 0;
    const counted: Record<keyof Overview['exporters'], number> = { stopped: 0, closed: 0, open: 0, paused: 0, recovering: 0 };
    for (const { running, count, ...columns } of exporters) {
        counted[running ? breakerOf(columns).breaker : 'stopped'] += count;
    }
    return { deliveries: { pending: of('pending'), queued: of('queued'), sending: of('sending') }, exporters: counted };
}

/** The state of an exporter's breaker, and the time of its next probe, from the columns that hold them. */
export function breakerOf({ pausedUntil, probeAt, slowStart }: BreakerColumns): Pick<ExporterHealth, 'breaker' | 'nextProbe'> {
    if (pausedUntil !== null || probeAt !== null) {
        const nextProbe = new Date(Math.max(pausedUntil?.getTime() ?? 0, probeAt?.getTime() ?? 0));
        return { breaker: pausedUntil === null ? 'open' : 'paused', nextProbe };
    }
    return { breaker: slowStart === null ? 'closed' : 'recovering', nextProbe: null };
}

/** The columns of an exporter that tell when it is sent to. */
export interface BreakerColumns {
    readonly pausedUntil: Date | null;
    /** When an open breaker lets a probe through, null while it is closed. */
    readonly probeAt: Date | null;
    /** The window while it grows, else null. */
    readonly slowStart: number | null;
}

/** The backlog, from the numbers that were counted of each age. */
export function backlogOf(counted: readonly CountedAge[], more: boolean): Backlog {
    const count = (wanted: BacklogAge): number => counted.reduce((sum, { age, count }) => sum + (age === wanted ? count : 0), 0);
    const ages = Object.fromEntries(BACKLOG_AGES.map(([age]) => [age, count(age)])) as Record<BacklogAge, number>;
    const oldest = counted.filter(({ count }) => count > 0).map((each) => each.oldest.getTime());
    return {
        waiting: counted.reduce((sum, { count }) => sum + count, 0),
        more,
        oldest: oldest.length === 0 ? null : new Date(Math.min(...oldest)),
        ages,
    };
}

interface CountedAge {
    readonly age: BacklogAge;
    readonly count: number;
    readonly oldest: Date;
}

/** An exporter as people look at it when they wonder how it fares. */
export interface ShownExporter extends Exporter {
    readonly health: ExporterHealth & {
        /**
         * From this time on, any failure, or an answer that the receiver wants to be left alone, stops the exporter. Null unless the exporter
         * runs, and has failed or been told to wait since the last 2xx.
         */
        readonly stopsAt: Date | null;
    };
}

/** An exporter with how it fares. */
export function withHealth<Shown extends Exporter>(
    exporter: Shown,
    health: ExporterHealth,
    { stopAfter }: { readonly stopAfter: number },
): Shown & ShownExporter {
    const failingSince = exporter.state === 'running' ? health.failingSince : null;
    const stopsAt = failingSince === null ? null : new Date(failingSince.getTime() + stopAfter);
    return { ...exporter, health: { ...health, stopsAt } };
}
