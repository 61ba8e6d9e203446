import t from 'tap';
import { heldOwnerLaws, ownerLaws, replayedOwnerLaws, retainedOwnerLaws } from '../../../../adapters/contract/webhooks/owner-laws.ts';
import type { ExporterStore } from '../../../../lib/webhooks/exporters/exporter-store.ts';
import { storeRefusals } from '../../../../lib/webhooks/store-refusals.ts';
import { type Mutants, proveWebhookLaws, rewriting } from './mutants.ts';

const MUTANTS: Mutants = {
    'stores nothing of another owner for an exporter, whoever has chosen it': (_, deliveries) => ({
        deliveries: rewriting(deliveries, (one) => ({ ...one, owner: 'ours' })),
    }),
    'changes the owner of an exporter that was sent nothing but tests': (exporters, deliveries) =>
        keepingOwner(exporters, async (exporterId) => (await deliveries.list({ exporterId, limit: 1 })).length > 0),
    'keeps the owner of an exporter while what it was sent is kept': handingOver,
    'changes an exporter only while it has the expected owner': (exporters) => ({
        exporters: { update: (id, { expectedOwner: _, ...patch }) => exporters.update(id, patch) },
    }),
    'keeps the owner of an exporter while something is held for it': handingOver,
    'keeps the owner of an exporter while a replay of it is kept': handingOver,
    'changes the owner of an exporter once what it was sent is removed': (exporters) =>
        keepingOwner(exporters, async (id) => (await exporters.health(id))?.lastOutcome !== null),
};

proveWebhookLaws(t, { ...ownerLaws, ...heldOwnerLaws, ...replayedOwnerLaws, ...retainedOwnerLaws }, MUTANTS);

/** Refuses another owner besides where this holds. */
function keepingOwner(exporters: ExporterStore, isKept: (id: string) => Promise<boolean>): { exporters: Pick<ExporterStore, 'update'> } {
    return {
        exporters: {
            async update(id, patch) {
                if (patch.owner !== undefined && (await isKept(id))) {
                    throw storeRefusals.ownerStays();
                }
                return await exporters.update(id, patch);
            },
        },
    };
}

/** Changes an owner whatever is kept: as if the exporter had been made anew. */
function handingOver(exporters: ExporterStore): { exporters: Pick<ExporterStore, 'update'> } {
    return {
        exporters: {
            async update(id, patch) {
                const before = await exporters.get(id);
                if (before === null || patch.owner === undefined) {
                    return await exporters.update(id, patch);
                }
                await exporters.remove(id);
                await exporters.insert({ ...before, owner: patch.owner });
                return { ...before, owner: patch.owner };
            },
        },
    };
}
