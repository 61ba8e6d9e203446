import Joi from 'joi';
import { ScanwireError } from '../../errors.ts';
import { checked, storableText } from '../../schema-validation.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/** How long a look goes back, and the length of its slices, in milliseconds. */
export const ACTIVITY_SPANS: Readonly<Record<ActivitySpan, { readonly span: number; readonly slice: number }>> = {
    hour: { span: 60 * 60_000, slice: 5 * 60_000 },
    day: { span: 24 * 60 * 60_000, slice: 60 * 60_000 },
};

/** How far a look goes back. */
export type ActivitySpan = 'hour' | 'day';

/** How many deliveries of a slice of time there were, and what became of them. */
export interface SliceTally {
    /** How many were looked at, the newest of the slice: `max` at most. */
    readonly deliveries: number;
    /** How many of these were delivered. */
    readonly delivered: number;
    /** How many of the `deliveries` had a last attempt that came to anything but `delivered`. */
    readonly failed: number;
}

/** What became of the deliveries that were accepted in a slice of time. */
export interface SliceCounts extends SliceTally {
    /**
     * Milliseconds from the acceptance to the end of those that were delivered: half of them took at most `p50`, nineteen of twenty at most `p95`.
     * Null when none was delivered.
     */
    readonly latency: { readonly p50: number; readonly p95: number } | null;
}

/** When a slice begins, and what it ends before. */
export interface SliceTimes {
    readonly since: Date;
    readonly until: Date;
    /** Whether there may be more deliveries than were looked at. */
    readonly more: boolean;
}

/** What happened in one slice of time. */
export interface ActivitySlice extends SliceCounts, SliceTimes {}

/** What is asked for. */
export interface ActivityQuery {
    /** `hour` in slices of five minutes, `day` in hours. `hour` by default. */
    readonly span?: ActivitySpan;
    /** Of one exporter only. */
    readonly exporterId?: string;
    /** Of these exporters only, as in `DeliveryFilter`. */
    readonly exporterIds?: readonly string[];
}

/** What became of deliveries lately. */
export interface Activity {
    /** The time of the store. */
    readonly at: Date;
    /** First to last; the last one is not over. */
    readonly slices: readonly ActivitySlice[];
}

/** What a store is asked for. */
export interface SliceOptions {
    readonly exporterId?: string;
    /** As in `DeliveryFilter`; not with `exporterId`. */
    readonly exporterIds?: readonly string[];
    /** The most deliveries of a slice that are looked at. */
    readonly max: number;
}

/**
 * How many deliveries of a slice are looked at: enough to tell shares and latencies, and no more work for a page of the console however much the
 * store keeps.
 */
export const MAX_OF_SLICE = 1_000;

type AskedActivity = Omit<ActivityQuery, 'exporterIds'> & { readonly span: ActivitySpan };

/** The rules of {@link ActivityQuery}, with their defaults, but for that of several exporters. */
export const activityQuerySchema: Joi.ObjectSchema<AskedActivity> = Joi.object<AskedActivity, true>({
    span: Joi.string()
        .valid(...Object.keys(ACTIVITY_SPANS))
        .default('hour'),
    exporterId: storableText(),
})
    .label('query')
    .default();

const wholeQuerySchema = (activityQuerySchema as Joi.ObjectSchema<ActivityQuery & AskedActivity>)
    .append({ exporterIds: Joi.array().items(storableText()) })
    .oxor('exporterId', 'exporterIds');

/** Reads what became of deliveries lately. */
export function activityOf({ deliveries: store }: WebhooksContext): (query?: ActivityQuery) => Promise<Activity> {
    return async (query) => {
        const { span, ...options } = checked(wholeQuerySchema, query);
        if (!store.activity || (options.exporterIds !== undefined && store.filtersByExporters !== true)) {
            throw new ScanwireError('MISCONFIGURED', 'Cannot show what became of deliveries: the store does not count them');
        }

        const at = await store.now();
        const bounds = boundsOf(at, ACTIVITY_SPANS[span]);
        return { at, slices: slicesOf(await store.activity(bounds, { ...options, max: MAX_OF_SLICE }), bounds, MAX_OF_SLICE) };
    };
}

/** The bounds of the slices, at round times, so that a slice that is over does not change any more. The last bound lies in the future. */
export function boundsOf(at: Date, { span, slice }: { readonly span: number; readonly slice: number }): readonly Date[] {
    const last = (Math.floor(at.getTime() / slice) + 1) * slice;
    return Array.from({ length: span / slice + 1 }, (_, index) => new Date(last - span + index * slice));
}

/** What was counted between each two of the bounds, of `max` deliveries at most. */
export function slicesOf<Counts extends SliceTally>(
    counted: readonly Counts[],
    bounds: readonly Date[],
    max: number,
): readonly (Counts & SliceTimes)[] {
    return counted.map((counts, index) => {
        const [since, until] = bounds.slice(index, index + 2) as [Date, Date];
        return { since, until, ...counts, more: counts.deliveries === max };
    });
}
