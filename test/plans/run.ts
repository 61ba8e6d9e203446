/*
 * `npm run plans`: what every statement of a delivery's way reads for one row, however much is kept. Ends with 1 when any reads a table that
 * grows as a whole, or too many pages.
 */
import { commander } from '../../cli/command.ts';
import { count, scriptCommand } from '../support/script-command.ts';
import { testServers } from '../support/servers.ts';
import { ANALYSED, examination, type Finding, type State, statesOf } from './examination.ts';

const { rows, sent } = scriptCommand('plans', "Shows what every statement of a delivery's way reads for one row, however much is kept.")
    .option('--rows <count>', 'deliveries kept', count, 1_000_000)
    .option('--sent <count>', 'of them sent without a vacuum since', inThreeHundreds, 300_000)
    .parse()
    .opts<{ rows: number; sent: number }>();

function inThreeHundreds(text: string): number {
    if (count(text) % 300 !== 0) {
        throw new commander.InvalidArgumentError('It must be divisible by 300.');
    }

    return count(text);
}

const servers = await testServers();
Object.assign(process.env, servers.env);

function print(state: State, findings: readonly Finding[], took: number): void {
    process.stdout.write(`\n${state.name} (${(took / 1_000).toFixed(0)} s)\n`);
    for (const { where, statement, pages, problems } of findings) {
        process.stdout.write(
            `${String(pages).padStart(8)} ${statement}, ${where}\n${problems.map((problem) => `         ! ${problem}\n`).join('')}`,
        );
    }
}

let failed = 0;
try {
    for (const analysed of ANALYSED) {
        const tables = await examination(analysed);
        for (const state of statesOf(rows, sent)) {
            const startedAt = performance.now();
            const findings = await tables.findings(state);
            print(state, findings, performance.now() - startedAt);
            failed += findings.filter(({ problems }) => problems.length > 0).length;
        }
        await tables.end();
    }
} finally {
    await servers.stop();
}
process.stdout.write(`\n${failed} statements cost more for what is kept\n`);
process.exitCode = failed === 0 ? 0 : 1;
