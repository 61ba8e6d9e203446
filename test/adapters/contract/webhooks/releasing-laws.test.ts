import t from 'tap';
import { releasingLaws } from '../../../../adapters/contract/webhooks/releasing-laws.ts';
import type { ExporterPatch } from '../../../../lib/webhooks/exporters/exporter-patch.ts';
import type { ExporterStore } from '../../../../lib/webhooks/exporters/exporter-store.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
    'lets all go once an exporter is not ordered any more, however many wait, and each once': (_, deliveries) => ({
        deliveries: {
            dispatch: async (options) => {
                const { handedOut, ...result } = await deliveries.dispatch(options);
                return { ...result, handedOut: handedOut.slice(0, 100) };
            },
        },
    }),
    'sends at once what is accepted once an exporter is not ordered any more, however many waited': changing(
        ({ ordered: _, ...patch }) => patch,
    ),
    'lets go what waited before a change although that is taken back at once, and orders what is accepted since': changing(
        ({ ordered: _, ...patch }) => patch,
    ),
    'keeps the order of what is replayed once an exporter is ordered again, however many are let go meanwhile': changing((patch) => {
        return patch.ordered === true ? {} : patch;
    }),
    'lets all keys go that were held once an exporter skips, however many, and holds those that fail once it holds again': changing(
        (patch) => {
            return patch.afterExhausted === 'hold' ? {} : patch;
        },
    ),
    'takes with a removal what is not let go yet': () => ({ exporters: { remove: async () => true } }),
};

proveWebhookLaws(t, releasingLaws, MUTANTS);

/** Changes something else than it is asked for, and says that it did what it was. */
function changing(change: (patch: ExporterPatch) => ExporterPatch): Mutant {
    const update =
        (exporters: ExporterStore): ExporterStore['update'] =>
        async (id, patch) => ({ ...(await exporters.update(id, change(patch))), ordered: patch.ordered ?? true });
    return (exporters) => ({ exporters: { update: update(exporters) } });
}
