import t from 'tap';
import { pauseLaws } from '../../../../adapters/contract/webhooks/pause-laws.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

/** Pauses nobody. */
const neverPausing: Mutant = (exporters) => ({
    exporters: {
        update: async (id, { pausedAt, ...patch }) => {
            const updated = await exporters.update(id, patch);
            return pausedAt === undefined ? updated : { ...updated, pausedAt };
        },
    },
});

const MUTANTS: Mutants = {
    'accepts for an exporter that is paused, and keeps it waiting until that is resumed': neverPausing,
    'keeps an exporter paused that is stopped and started': (exporters) => ({
        exporters: {
            update: (id, patch) => exporters.update(id, patch.state === 'running' ? { ...patch, pausedAt: null } : patch),
        },
    }),
    'claims nothing of an exporter that is paused, but a test': (exporters, deliveries) => ({
        deliveries: {
            claim: async (...args) => {
                for (const { id } of await exporters.list()) {
                    await exporters.update(id, { pausedAt: null });
                }
                return await deliveries.claim(...args);
            },
        },
    }),
    'counts the time of a pause as none for which an exporter failed': neverPausing,
    'counts the time of a pause from the first failure in it': neverPausing,
    'ends what was being sent when its exporter was paused': (exporters, deliveries) => ({
        deliveries: {
            recordOutcomes: async (outcomes, rules) => {
                const paused = (await exporters.list()).some(({ pausedAt }) => pausedAt !== null);
                return paused ? outcomes.map(() => false) : await deliveries.recordOutcomes(outcomes, rules);
            },
        },
    }),
};

proveWebhookLaws(t, pauseLaws, MUTANTS);
