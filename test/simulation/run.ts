/*
 * `npm run simulate`: a deployment whose time, network, queue and crashes come out of a seed, once for each seed. Ends with 1 when
 * anything was that must not be, with the seed, what was commanded, and the end of the trace.
 */
import { parseArgs } from 'node:util';
import { type Result, simulate } from './simulation.ts';
import { memoryStores, openSimulatedDatabase } from './stores.ts';

const { values } = parseArgs({
    options: {
        seed: { type: 'string' },
        seeds: { type: 'string', default: '1000' },
        store: { type: 'string', default: 'memory' },
        shrink: { type: 'boolean', default: false },
        trace: { type: 'string', default: '60' },
    },
});
const first = Number(values.seed ?? Math.floor(Math.random() * 1_000_000_000));
const [seeds, lines] = [Number(values.seeds), Number(values.trace)];
if (![first, seeds, lines].every(Number.isSafeInteger) || seeds < 1 || !['memory', 'postgres'].includes(values.store)) {
    process.stderr.write('--seed, --seeds and --trace must be whole numbers, --store memory or postgres\n');
    process.exit(2);
}

function report({ seed, violations, story, trace }: Result): void {
    process.stdout.write(`\n${trace.slice(-lines).join('\n')}\n\n${story}\n\n${violations.join('\n')}\n`);
    process.stdout.write(`npm run simulate -- --seed ${seed} --seeds 1 --store ${values.store}\n`);
}

const database = values.store === 'postgres' ? await openSimulatedDatabase() : null;
const startedAt = performance.now();
let failed = 0;
for (let seed = first; seed < first + seeds; seed += 1) {
    const result = await simulate(seed, database?.stores ?? memoryStores, { shrink: values.shrink });
    if (result.violations.length > 0) {
        failed += 1;
        report(result);
    }
}
const perMinute = (60_000 * seeds) / (performance.now() - startedAt);
process.stdout.write(`\n${seeds} seeds from ${first}, ${failed} failed, ${perMinute.toFixed(0)} a minute\n`);
await database?.close();
process.exit(failed === 0 ? 0 : 1);
