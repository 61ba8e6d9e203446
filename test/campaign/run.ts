/*
 * `npm run faults`: a deployment on servers of its own, under faults that a seed draws. Ends with 1 when anything was lost, when a
 * message came twice without a cause, or when it found anything else that must not be. With `--upgrade-from PATH`, a compiled checkout
 * of an earlier version, its processes are replaced by those of this one instead.
 */
import { anySeed, seed as aSeed, count, scriptCommand } from '../support/script-command.ts';
import { campaign } from './campaign.ts';
import { report } from './report.ts';

/** Of ten minutes 20,000: a shorter run with as many would end in a backlog that it does not wait for. */
const EVENTS_A_MINUTE = 2_000;

const {
    seed,
    minutes,
    events: given,
    upgradeFrom,
} = scriptCommand('faults', 'Runs a deployment on servers of its own under faults that a seed draws.')
    .option('--seed <seed>', 'that draws the faults', aSeed, anySeed())
    .option('--minutes <count>', 'how long', count, 10)
    .option('--events <count>', `published meanwhile; ${EVENTS_A_MINUTE} a minute unless it is given`, count)
    .option('--upgrade-from <path>', 'replaces the processes of this compiled checkout of an earlier version instead')
    .parse()
    .opts<{ seed: number; minutes: number; events?: number; upgradeFrom?: string }>();

const events = given ?? EVENTS_A_MINUTE * minutes;
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
