/*
 * Runs compiled test files, each in a process of its own, and says in TAP what they say. tap's own runner puts two loaders in front of
 * every module of every thread, for mocks and to know which files a test has loaded. Nothing here needs them, and they take a fifth of
 * the processor's time.
 */
import type { ChildProcess } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import t from 'tap';
import { ProcessorTime } from './processor-time.ts';
import { GATHERER, QUICK_NODE } from './scanwire.ts';

/** Milliseconds that a file may take, unless it asks for more. */
const TIMEOUT = 120_000;

/** What begins first, so that the run does not end with one of them alone. */
const LONGEST = /\/(?:simulation|configurations|campaign|plans|webhook-laws|many-hosts|exporters-browser|socket)\b/;

/** More than the machine has processors for: many files wait for half of their time, for timers, servers and the processes they have started. */
const JOBS = Math.min(3, availableParallelism() + 1);

/** So many files are named at the end with what they took of the processor. */
const COSTLIEST = 40;

const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { jobs: { type: 'string', default: String(JOBS) } },
});
const files = [...positionals.filter((file) => LONGEST.test(file)), ...positionals.filter((file) => !LONGEST.test(file))];

t.jobs = Math.max(1, Number(values.jobs));
t.setTimeout(0);
t.plan(files.length);

const running = new Set<ChildProcess>();
const times = new ProcessorTime();
t.on('spawn', (test) => {
    test.on('process', (child) => {
        running.add(child);
        child.once('exit', () => times.ended(test.name));
        child.once('close', () => running.delete(child));
    });
});

process.on('exit', () => {
    const lines = times.report(COSTLIEST);
    process.stdout.write(lines.map((line) => `# ${line}\n`).join(''));
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
        for (const child of running) {
            child.kill(signal);
        }

        process.exit(1);
    });
}

// In place of the loader that tap puts there; what a test starts inherits it, unless it is given another environment.
const nodeOptions = process.env.COVERAGE_FOLDER === undefined ? '' : `--import=${pathToFileURL(GATHERER).href}`;
for (const file of files) {
    void t.spawn('env', [`NODE_OPTIONS=${nodeOptions}`, ...QUICK_NODE, '--enable-source-maps', file], {
        name: relative('.', file),
        at: null,
        stack: '',
        buffered: t.jobs > 1,
        timeout: TIMEOUT,
        env: { ...process.env, TAP_TIMEOUT: String(TIMEOUT / 1000) },
    });
}
