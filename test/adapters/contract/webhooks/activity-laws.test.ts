import t from 'tap';
import { activityLaws } from '../../../../adapters/contract/webhooks/activity-laws.ts';
import type { SliceCounts, SliceOptions } from '../../../../lib/webhooks/deliveries/activity.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

/** Stores that ask for something else. */
function asking(change: (bounds: readonly Date[], options: SliceOptions) => readonly [readonly Date[], SliceOptions]): Mutant {
    return (_, deliveries) => ({
        deliveries: { activity: async (bounds, options) => (await deliveries.activity?.(...change(bounds, options))) ?? [] },
    });
}

/** Stores that count something else. */
function counting(change: (counts: SliceCounts) => SliceCounts): Mutant {
    return (_, deliveries) => ({
        deliveries: { activity: async (bounds, options) => ((await deliveries.activity?.(bounds, options)) ?? []).map(change) },
    });
}

const MUTANTS: Mutants = {
    'counts nothing where there is nothing': counting((counts) => ({ ...counts, latency: { p50: 0, p95: 0 } })),
    'counts deliveries in the slice in which they were accepted': asking(([first = new Date(), ...others], options) => [
        [new Date(first.getTime() + 1), ...others],
        options,
    ]),
    'counts what was delivered, and what came to anything else': counting((counts) => ({
        ...counts,
        failed: counts.deliveries - counts.delivered,
    })),
    'says within which time half, and nineteen of twenty, were delivered': counting((counts) => ({
        ...counts,
        latency: counts.latency && { ...counts.latency, p95: counts.latency.p95 + 10 },
    })),
    'looks at the newest of a slice, and at no more than it is told': asking((bounds, options) => [
        bounds,
        { ...options, max: options.max + 1 },
    ]),
    'counts the deliveries of one exporter': asking((bounds, { exporterId: _, ...options }) => [bounds, options]),
};

proveWebhookLaws(t, activityLaws, MUTANTS);
