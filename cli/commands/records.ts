import type { Command } from 'commander';
import type { RecordsReport } from '../check-records.ts';
import { command } from '../command.ts';
import { openInput } from '../input.ts';
import { table } from '../output/table.ts';

export function addRecords(program: Command): void {
    const records = program.command('records').description('HTTPS scan records');

    command(records, 'check <file>', 'check a file of records, one in each line, - for stdin', async ({ args: [file = ''] }) => {
        const { source } = await openInput(file);
        const { checkRecords } = await import('../check-records.ts');
        const report = await checkRecords(source);
        return { json: report, text: () => reportText(report), failed: report.bad > 0 };
    });
}

async function reportText({ good, bad, problems, moreProblems }: RecordsReport): Promise<string> {
    const summary = `${good} good, ${bad} bad`;
    if (problems.length === 0) {
        return summary;
    }

    const rows = problems.map(({ line, field, reason }) => [String(line), field, reason]);
    const more = moreProblems === 0 ? '' : `and ${moreProblems} more problems\n`;
    return `${await table(['LINE', 'FIELD', 'PROBLEM'], rows, '')}\n${more}${summary}`;
}
