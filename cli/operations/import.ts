import type { ImportSummary } from '../../lib/inventory/store.ts';
import { type Operation, operation } from './operation.ts';

/** Either all hosts of the file are stored or none. */
export const importScan: Operation<{ workspace: string; source: AsyncIterable<Uint8Array> }, ImportSummary> = operation({
    name: 'import',
    method: 'POST',
    path: '/import',
    streamed: true,
    creates: true,
    async run(system, { workspace, source }) {
        const { readScan } = await import('../../lib/inventory/read-scan.ts');
        const { workspaceName } = await import('../../lib/inventory/workspace-name.ts');
        return system.inventory.importHosts(workspaceName(workspace), readScan(source));
    },
});
