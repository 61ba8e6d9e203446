/*
 * Runs compiled test files in processes of their own, and says in TAP what they say. tap's own runner puts two loaders in front of
 * every module of every thread, for mocks and to know which files a test has loaded. Nothing here needs them, and they take a fifth of
 * the processor's time.
 */
import type { ChildProcess } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import t from 'tap';
import { ProcessorTime } from './processor-time.ts';
import { GATHERER, QUICK_NODE } from './scanwire.ts';

/** Milliseconds that a file may take, unless it asks for more. */
const TIMEOUT = 120_000;

/** What begins first, so that the run does not end with one of them alone. */
const LONGEST =
    /\/(?:simulation|configurations|campaign|connections|embedding|peers|plans|laws|(?:other-)?webhook-laws|many-hosts|silent-redis|serve|socket|fuzz|backup|check-record|read-records|gunzip)\b/;

/**
 * What leaves nothing behind in its process, and so may share it: to start one and to load tap and what is tested takes half a second of the processor,
 * and longer than most of these tests.
 */
const SHARING = /\/test\/(?:acceptance|adapters|attack|bench|cli|docs|examples|faults|lib|plugins|support)\//;

/** What looks at its process as a whole, changes it, or is long. */
const ALONE: readonly RegExp[] = [
    /\/(?:clocks-differ|commit-waits-for-a-poll|echoing-receivers|http-sender|linear-expressions|missing-packages|openapi|optional-packages|receiver-certificate|running-pages|silent-redis)\.test\.js$/,
    /\/(?:constant-memory|read-only-inventory|template|gunzip|check-record|decode-records|mend-record|read-records|read-scan|read-xml|vendors-xml)\.test\.js$/,
    /\/(?:backup|connections|embedding|many-hosts|pglite\/laws|postgres\/laws|receiver-tokens|serve|socket|(?:other-)?webhook-laws)\.test\.js$/,
];

/** So many files share a process at most, of those that start servers or commands and wait for them, and of those that share a browser. */
const [SHARED_BY, WAITING_SHARED_BY, BROWSER_SHARED_BY] = [10, 5, 4];

/** What mostly waits for what it has started. */
const WAITING = /\/test\/(?:acceptance|adapters\/(?!contract|memory)|attack|bench|cli|docs|examples|faults)/;

/** More than the machine has processors for: many files wait for half of their time, for timers, servers and the processes they have started. */
const JOBS = Math.min(3, availableParallelism() + 1);

/** Tests in a browser. They reach no lines that other tests do not; gathering what they reach takes time. */
const BROWSERS = /-browser\.test\.js$/;

/** So many files are named at the end with what they took of the processor. */
const COSTLIEST = 40;

const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { jobs: { type: 'string', default: String(JOBS) } },
});

t.jobs = Math.max(1, Number(values.jobs));
t.setTimeout(0);
const processes = dealt(positionals);
t.plan(processes.length);

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

const TEST_PROCESS = fileURLToPath(new URL('./test-process.js', import.meta.url));

for (const [index, files] of processes.entries()) {
    const [file = '', ...more] = files;
    const program = [...QUICK_NODE, '--enable-source-maps', TEST_PROCESS, String(index)];
    void t.spawn('env', [`NODE_OPTIONS=${nodeOptionsFor(files)}`, ...program], {
        name: `${relative('.', file)}${more.length === 0 ? '' : ` and ${more.length} more`}`,
        at: null,
        stack: '',
        buffered: t.jobs > 1,
        timeout: TIMEOUT * files.length,
        env: { ...process.env, TAP_TIMEOUT: String(TIMEOUT / 1000), TEST_FILES: files.join('\n') },
    });
}

/** In place of the loader that tap puts there; what a test starts inherits it, unless it is given another environment. */
function nodeOptionsFor(files: readonly string[]): string {
    const gathers = process.env.COVERAGE_FOLDER !== undefined && !files.every((file) => BROWSERS.test(file));
    return gathers ? `--import=${pathToFileURL(GATHERER).href}` : '';
}

/** The files of each process: the longest alone and first, then those that share one, which take longer together than one of the rest. */
function dealt(files: readonly string[]): readonly (readonly string[])[] {
    const shares = (file: string): boolean => SHARING.test(file) && !ALONE.some((alone) => alone.test(file));
    const sharing = files.filter(shares);
    const browsers = sharing.filter((file) => BROWSERS.test(file));
    const waiting = sharing.filter((file) => WAITING.test(file) && !browsers.includes(file));
    const quick = sharing.filter((file) => !(WAITING.test(file) || browsers.includes(file)));
    const shared = [...inGroups(browsers, BROWSER_SHARED_BY), ...inGroups(waiting, WAITING_SHARED_BY), ...inGroups(quick, SHARED_BY)];
    const alone = files.filter((file) => !shares(file));
    const first = (file: string): boolean => LONGEST.test(file);
    return [...alone.filter(first).map((file) => [file]), ...shared, ...alone.filter((file) => !first(file)).map((file) => [file])];
}

/** Those of one folder, which load the same, beside each other. */
function inGroups(files: readonly string[], size: number): readonly (readonly string[])[] {
    const count = Math.ceil(files.length / size);
    return Array.from({ length: count }, (_, index) => files.slice(index * size, (index + 1) * size));
}
