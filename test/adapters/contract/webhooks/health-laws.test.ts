import t from 'tap';
import { healthLaws, orderedHealthLaws, overviewLaws } from '../../../../adapters/contract/webhooks/health-laws.ts';
import type { ExporterHealth, Overview } from '../../../../lib/webhooks/exporters/exporter-health.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
    'tells how an exporter fares that has had nothing to do': telling(({ at }) => ({ failingSince: at })),
    'tells since when an exporter fails and when it is probed': telling(({ failingSince }) => ({ nextProbe: failingSince })),
    'tells until when an exporter wants to be left alone': telling(() => ({ pausedUntil: null })),
    'tells the last outcome, tests and faults of ours aside': (_, deliveries) => ({
        deliveries: {
            recordOutcomes: (outcomes, rules) =>
                deliveries.recordOutcomes(
                    outcomes.map((one) => ({ ...one, health: one.health === 'none' ? 'failure' : one.health })),
                    rules,
                ),
        },
    }),
    'counts what waits by age, and what is in flight': telling(({ backlog }) => ({
        backlog: { ...backlog, ages: { ...backlog.ages, minute: backlog.waiting } },
    })),
};

proveWebhookLaws(t, healthLaws, MUTANTS);
proveWebhookLaws(t, orderedHealthLaws, {
    // leaves out what waits for its turn
    'counts by age what waits for another of its order key': telling(({ backlog }) => ({
        backlog: { ...backlog, waiting: Math.min(1, backlog.waiting) },
    })),
    // leaves out what is to be let go yet
    'counts all that waited while an exporter that is not ordered any more lets it go': telling(({ backlog }) => ({
        backlog: { ...backlog, waiting: Math.min(100, backlog.waiting) },
    })),
    // takes it for as old as its last try
    'counts a retry that waits for one that was replayed as old as its event': telling(({ backlog }) => ({
        backlog: { ...backlog, ages: { ...backlog.ages, hour: backlog.ages.day, day: 0 } },
    })),
});
proveWebhookLaws(t, overviewLaws, {
    'counts active deliveries, by state': counting(({ deliveries }) => ({
        deliveries: { ...deliveries, queued: deliveries.sending },
    })),
    'counts exporters by the state of their breaker': counting(({ exporters }) => ({
        exporters: { ...exporters, open: 0, closed: exporters.closed + exporters.open },
    })),
});

function counting(change: (overview: Overview) => Partial<Overview>): Mutant {
    return (exporters) => ({
        exporters: {
            overview: async (limit) => {
                const overview = await (exporters.overview as NonNullable<typeof exporters.overview>)(limit);
                return { ...overview, ...change(overview) };
            },
        },
    });
}

function telling(change: (health: ExporterHealth) => Partial<ExporterHealth>): Mutant {
    return (exporters) => ({
        exporters: {
            health: async (id) => {
                const health = await exporters.health(id);
                return health === null ? null : { ...health, ...change(health) };
            },
        },
    });
}
