/*
 * `npm run faults`: a deployment on servers of its own, under faults that a seed draws. Ends with 1 when anything was lost, when a
 * message came twice without a cause, or when it found anything else that must not be. With `--upgrade-from PATH`, a compiled checkout
 * of an earlier version, its processes are replaced by those of this one instead.
 */
import { parseArgs } from 'node:util';
import { campaign } from './campaign.ts';
import { report } from './report.ts';

const { values } = parseArgs({
    options: {
        seed: { type: 'string' },
        minutes: { type: 'string', default: '10' },
        events: { type: 'string', default: '20000' },
        'upgrade-from': { type: 'string' },
    },
});
const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000_000));
const upgradeFrom = values['upgrade-from'];
const [minutes, events] = [Number(values.minutes), Number(values.events)];
if (![seed, minutes, events].every(Number.isSafeInteger) || minutes < 1 || events < 1) {
    process.stderr.write('--seed must be a whole number, --minutes and --events whole numbers from 1 on\n');
    process.exit(2);
}

process.stdout.write(`npm run faults -- --seed ${seed} --minutes ${minutes} --events ${events}\n\n`);
const interruption = new AbortController();
process.once('SIGINT', () => interruption.abort());
process.once('SIGTERM', () => interruption.abort());
try {
    const onProgress = (line: string): void => void process.stdout.write(`${line}\n`);
    const ended = await campaign({ seed, minutes, events, upgradeFrom, onProgress, signal: interruption.signal });
    process.stdout.write(`\n${await report(ended)}`);
    process.exit(ended.failures.length === 0 ? 0 : 1);
} catch (error) {
    process.stderr.write(`\n${error instanceof Error ? error.message : error}\n`);
    process.exit(1);
}
