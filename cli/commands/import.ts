import type { Command } from 'commander';
import { countsText, NONE } from '../../lib/inventory/import-counts.ts';
import type { ImportSummary } from '../../lib/inventory/store.ts';
import { printable } from '../../lib/printable.ts';
import { performing } from '../command.ts';
import { openInput } from '../input-file.ts';
import { followed } from '../output/progress.ts';

export function define(self: Command): void {
    performing(self, async (call) => {
        const [file = ''] = call.args;
        const input = await openInput(file);
        const sha256 = await input.sha256();
        const replace = call.options.replace === true;
        const dryRun = call.options.dryRun === true;
        const behind = ['storing', replace && 'comparing', dryRun && 'undoing'] as const;
        const progress = await followed(
            input,
            !call.json,
            behind.filter((phase) => phase !== false),
        );
        const { source, onProgress } = progress;
        const importing = call.perform('importScan', {
            workspace: String(call.options.workspace),
            replace,
            dryRun,
            source,
            sha256,
            onProgress,
        });
        const summary = await importing.finally(progress.end);
        return { json: summary, text: () => summaryText(summary, dryRun) };
    });
    self.option('--workspace <name>', 'workspace to import into, made when missing', 'default')
        .option('--replace', 'the file is the whole workspace: hosts and services that are not in it are removed')
        .option('--dry-run', 'only say what would be changed');
}

/** Notes and vulnerabilities are told where the file has any. */
function summaryText({ workspace, hosts, services, notes, vulns }: ImportSummary, dryRun: boolean): string {
    const found = Object.entries({ notes, vulns }).flatMap(([name, counts]) => {
        const text = counts === undefined ? NONE : countsText(counts);
        return text === NONE ? [] : [`${name} ${text}`];
    });
    const told = [`hosts ${countsText(hosts)}`, `services ${countsText(services)}`, ...found].join('; ');
    return `${dryRun ? 'Would import' : 'Imported'} into ${printable(workspace.name)}: ${told}`;
}
