import t from 'tap';
import { noticeLaws } from '../../../../adapters/contract/webhooks/notice-laws.ts';
import type { ExporterNotice } from '../../../../lib/webhooks/events/exporter-notices.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
    'notices once that a breaker opens': noticing((all) => all.map((one) => ({ ...one, failingSince: one.at }))),
    'notices the first delivered one after a breaker was open, and no other': noticing((all) => [...all, ...all.slice(1)]),
    'notices that an outcome stops an exporter, and why': noticing((all) => all.map((one) => ({ ...one, reason: null }))),
    'notices nothing that a user does, and no recovery before something was delivered': (_, deliveries) => ({
        deliveries: {
            // as if a test were a delivery
            recordOutcomes: (outcomes, rules) =>
                deliveries.recordOutcomes(
                    outcomes.map((one) => ({ ...one, health: one.health === 'none' ? 'success' : one.health })),
                    rules,
                ),
        },
    }),
    'keeps notices until they are forgotten, oldest first': () => ({ exporters: { forgetNotices: async () => [] } }),
    'tells which notices a call has forgotten, each once': (exporters) => ({
        exporters: {
            forgetNotices: async (ids) => {
                await exporters.forgetNotices?.(ids);
                return ids;
            },
        },
    }),
    'gives notices behind a position, also of one that is forgotten': (exporters) => ({
        exporters: {
            // as if a position were a place among those that are left
            notices: async (limit, after = 0) => ((await exporters.notices?.(after + limit)) ?? []).slice(after),
        },
    }),
};

proveWebhookLaws(t, noticeLaws, MUTANTS);

function noticing(change: (all: readonly ExporterNotice[]) => readonly ExporterNotice[]): Mutant {
    return (exporters) => ({
        exporters: { notices: async (...args) => change((await exporters.notices?.(...args)) ?? []) },
    });
}
