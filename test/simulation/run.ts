/*
 * `npm run simulate`: a deployment whose time, network, queue and crashes come out of a seed, once for each seed. Ends with 1 when
 * anything was that must not be, with the seed, what was commanded, and the end of the trace.
 */
import { commander } from '../../cli/command.ts';
import { anySeed, count, scriptCommand, seed } from '../support/script-command.ts';
import { type Result, simulate } from './simulation.ts';
import { memoryStores, openSimulatedDatabase } from './stores.ts';

const {
    seed: first,
    seeds,
    store,
    rated,
    shrink,
    trace: lines,
} = scriptCommand('simulate', 'Runs deployments whose time, network, queue and crashes come out of a seed.')
    .option('--seed <seed>', 'of the first one', seed, anySeed())
    .option('--seeds <count>', 'one after the other', count, 1_000)
    .addOption(new commander.Option('--store <store>', 'where the rows are').choices(['memory', 'postgres']).default('memory'))
    .option('--rated', 'each with a rate of the deployment; of some seeds otherwise')
    .option('--shrink', 'looks for the shortest story of a failed one', false)
    .option('--trace <lines>', 'of a failed one, from its end', count, 60)
    .parse()
    .opts<{ seed: number; seeds: number; store: 'memory' | 'postgres'; rated?: true; shrink: boolean; trace: number }>();

function report({ seed, violations, story, trace }: Result): void {
    process.stdout.write(`\n${trace.slice(-lines).join('\n')}\n\n${story}\n\n${violations.join('\n')}\n`);
    process.stdout.write(`npm run simulate -- --seed ${seed} --seeds 1 --store ${store}${rated ? ' --rated' : ''}\n`);
}

const database = store === 'postgres' ? await openSimulatedDatabase() : null;
const startedAt = performance.now();
let failed = 0;
for (let at = first; at < first + seeds; at += 1) {
    const result = await simulate(at, database?.stores ?? memoryStores, { shrink, ...(rated && { rated, rare: false }) });
    if (result.violations.length > 0) {
        failed += 1;
        report(result);
    }
}
const perMinute = (60_000 * seeds) / (performance.now() - startedAt);
process.stdout.write(`\n${seeds} seeds from ${first}, ${failed} failed, ${perMinute.toFixed(0)} a minute\n`);
await database?.close();
process.exit(failed === 0 ? 0 : 1);
