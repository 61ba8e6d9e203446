import type { Command } from 'commander';
import { countsText } from '../../lib/inventory/import-counts.ts';
import type { ImportSummary } from '../../lib/inventory/store.ts';
import { performing } from '../command.ts';
import { openInput } from '../input.ts';
import { followed } from '../output/progress.ts';
import { printable } from '../output/table.ts';

export function define(self: Command): void {
    performing(self, async (call) => {
        const [file = ''] = call.args;
        const progress = await followed(await openInput(file), !call.json);
        const { source, onProgress } = progress;
        const importing = call.perform('importScan', {
            workspace: String(call.options.workspace),
            replace: call.options.replace === true,
            source,
            onProgress,
        });
        const summary = await importing.finally(progress.end);
        return { json: summary, text: () => summaryText(summary) };
    });
    self.option('--workspace <name>', 'workspace to import into, made when missing', 'default').option(
        '--replace',
        'the file is the whole workspace: hosts and services that are not in it are removed',
    );
}

function summaryText({ workspace, hosts, services }: ImportSummary): string {
    return `Imported into ${printable(workspace.name)}: hosts ${countsText(hosts)}; services ${countsText(services)}`;
}
