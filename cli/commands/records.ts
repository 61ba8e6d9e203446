import type { Command } from 'commander';
import { bare } from '../command.ts';
import { openInput } from '../input.ts';
import { table } from '../output/table.ts';

export function addRecords(program: Command): void {
    const records = program.command('records').description('HTTPS scan records');

    bare(records, 'check <file>', 'check a file of records, one in each line, - for stdin', async ({ args: [file = ''] }) => {
        const { source } = await openInput(file);
        const { checkRecords } = await import('../check-records.ts');
        const report = await checkRecords(source);
        return {
            json: report,
            failed: report.invalid > 0,
            text: async () => {
                const summary = `${report.valid} valid, ${report.invalid} invalid`;
                const rows = report.problems.map(({ line, field, reason }) => [String(line), field ?? '', reason]);
                return rows.length === 0 ? summary : `${await table(['LINE', 'FIELD', 'REASON'], rows, '')}\n${summary}`;
            },
        };
    });
}
