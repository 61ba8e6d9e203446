import type { ImportedCounts } from '../../../lib/inventory/import-counts.ts';
import type { Workspace } from '../../../lib/inventory/resources.ts';
import type { InventoryTables } from './inventory-tables.ts';

/** What decides what an import makes of its hosts. */
interface Import {
    readonly workspace: Workspace | undefined;
    /** The id of where they come from. */
    readonly origin: string | undefined;
    readonly replace: boolean;
}

/** An import after which the inventory has stayed as it was. */
interface Remembered {
    /** Of the same once more. */
    readonly counts: ImportedCounts;
    /** Ids of those that it has named and that are not down. */
    readonly hosts: readonly number[];
}

/** So many are remembered. */
const MOST = 100;

/** The imports that are remembered, until anything is written that one of them would look at. */
export function rememberedImports({ hosts, services, notes, vulns }: InventoryTables) {
    const changes = (): number => [hosts, services, notes, vulns].reduce((sum, table) => sum + table.changes(), 0);
    const keyOf = ({ workspace, origin, replace }: Import): string =>
        JSON.stringify([workspace?.id, workspace?.boundary, workspace?.limit_to_network, origin, replace]);
    let remembered = new Map<string, Remembered>();
    let asOf = changes();

    return {
        recall(made: Import): Remembered | undefined {
            return asOf === changes() ? remembered.get(keyOf(made)) : undefined;
        },

        remember(made: Import, known: Remembered): void {
            if (asOf !== changes()) {
                remembered = new Map();
                asOf = changes();
            }
            remembered.delete(keyOf(made));
            remembered.set(keyOf(made), known);
            const [oldest = ''] = remembered.keys();
            if (remembered.size > MOST) {
                remembered.delete(oldest);
            }
        },
    };
}
