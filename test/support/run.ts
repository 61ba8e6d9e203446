/*
 * What `npm test` runs: every check of the code and the package, then the tests with a Redis and a PostgreSQL. With
 * arguments (test files, folders, `--bail`, `--jobs 1`) only those tests run.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { coverage, GATHERED } from './coverage.ts';
import { newlyMigrated } from './migrated-database.ts';
import { testFiles } from './named-tests.ts';
import { packed } from './packed.ts';
import { installForeignPrograms, type TestServers, testServers } from './servers.ts';
import { isWorthReading, skippedTest, skipsOf, type TapTotals, tapTotals } from './tap-output.ts';
import { type FolderInMemory, folderInMemory } from './temporary-folders.ts';
import type { TestDatabase } from './test-database.ts';

const ALLOWED_SKIPS = 'test/allowed-skips.json';

const given = process.argv.slice(2);
const running = new Set<ChildProcess>();
let totals: TapTotals = { passed: 0, failed: 0 };
/** Names of the tests that were skipped. */
const skipped = new Set<string>();
/** Whether the programs of others that tests run were installed, as far as they were missing. */
let installs = false;
let servers: TestServers | undefined;
let migrated: TestDatabase | undefined;
let interrupted = false;
/** Where tests write, where this machine has it. */
let memory: FolderInMemory | undefined;

const checksOf = (tarball: string): readonly [title: string, command: string, args: readonly string[]][] => [
    ['Lint and format', 'npm', ['run', '--silent', 'lint']],
    ['Package: publint', 'publint', ['--strict']],
    ['Package: are the types wrong', 'attw', [tarball, '--profile', 'esm-only']],
];

/** What the tests and the checks of a whole run share: to pack the package takes two seconds of the processor's time. */
let ofPackage: Awaited<ReturnType<typeof packed>> | undefined;

async function main(): Promise<number> {
    const failed: string[] = [];
    memory = folderInMemory();
    if (memory !== undefined) {
        process.env.TMPDIR = memory.path;
    }

    if (given.length === 0) {
        ofPackage = await packed();
        process.env.SCANWIRE_PACKED = join(ofPackage.folder, 'scanwire.tgz');
    }

    // One after the other beside the tests: most of them leave a processor idle.
    const [tests] = await Promise.all([
        runTests(),
        ofPackage === undefined ? undefined : runChecks(failed, join(ofPackage.folder, 'scanwire.tgz')),
    ]);
    if (tests !== 0) {
        failed.push('Tests');
    }

    if (!areSkipsAllowed()) {
        failed.push('Skips');
    }

    if (given.length === 0 && !interrupted && !(await isCovered())) {
        failed.push('Coverage');
    }

    const others = failed.filter((title) => title !== 'Tests').length;
    const failures = others + (failed.includes('Tests') ? Math.max(1, totals.failed) : totals.failed);
    const summary = `${totals.passed} passed, ${failures} failed`;
    writeFileSync(join('build', 'totals'), `${summary}\n`);
    console.log(`\n${failed.length === 0 ? 'All is well' : `Failed: ${failed.join(', ')}`} (${summary})`);
    return failed.length === 0 && !interrupted ? 0 : 1;
}

/** For npm, which would build what it packs once more, below the tests that run it. */
const AS_BUILT = { npm_config_ignore_scripts: 'true' };

/** Says nothing more of each than that it is well, unless it is not. */
async function runChecks(failed: string[], tarball: string): Promise<void> {
    for (const [title, command, args] of checksOf(tarball)) {
        const lines: string[] = [];
        const code = interrupted ? 1 : await run(command, args, { env: AS_BUILT, read: (line) => lines.push(line) });
        console.log(code === 0 ? `ok - ${title}` : `not ok - ${title}\n${lines.join('\n')}`);
        if (code !== 0) {
            failed.push(title);
        }
    }
}

async function runTests(): Promise<number> {
    const files = testFiles(given);
    heading('Servers');
    if (files.compiled.some((file) => /test\/interop|browser/.test(file))) {
        installs = installForeignPrograms();
    }

    servers = await testServers();
    migrated = await newlyMigrated(servers.env.DATABASE_URL);
    // Some tests alone reach little, and gathering it takes time.
    const gathers = given.length === 0;
    rmSync(GATHERED, { recursive: true, force: true });
    const env = {
        ...servers.env,
        MIGRATED_DATABASE: migrated.name,
        ...(memory !== undefined && { FOLDER_OF_TESTS: memory.link }),
        ...(files.bails && { TAP_BAIL: '1' }),
        ...(gathers && { COVERAGE_FOLDER: resolve(GATHERED) }),
    };
    console.log(`Redis ${withoutPassword(env.REDIS_URL)}, PostgreSQL ${withoutPassword(env.DATABASE_URL)}`);
    const args = [join('build', 'test', 'support', 'test-files.js'), ...files.options, ...files.compiled];
    heading('Tests');
    return interrupted ? 1 : run(process.execPath, args, { env, read: readTap });
}

/** Names every test that was skipped, and why it may be; one that is not on the list fails the run. */
function areSkipsAllowed(): boolean {
    const reasons = JSON.parse(readFileSync(ALLOWED_SKIPS, 'utf8')) as Record<string, string>;
    const { lines, allowed } = skipsOf(skipped, reasons, { installs });
    if (lines.length > 0) {
        heading('Skipped');
    }

    for (const line of lines) {
        console.log(line);
    }

    return allowed;
}

async function isCovered(): Promise<boolean> {
    heading('Coverage');
    if ((await run('tap', ['report', 'json', '--allow-incomplete-coverage'])) !== 0) {
        return false;
    }

    const { text, enough } = coverage();
    console.log(text);
    return enough;
}

/** Prints a line for each file and all about what failed. */
function readTap(line: string): void {
    totals = tapTotals(line) ?? totals;
    const name = skippedTest(line);
    if (name !== null) {
        skipped.add(name);
    }

    if (isWorthReading(line)) {
        console.log(line);
    }
}

interface RunOptions {
    readonly env?: Readonly<Record<string, string>>;
    /** Gets the output line by line, instead of its being printed. */
    readonly read?: (line: string) => void;
}

async function run(command: string, args: readonly string[], { env = {}, read }: RunOptions = {}): Promise<number> {
    const path = `${join(process.cwd(), 'node_modules', '.bin')}:${process.env.PATH}`;
    const child = spawn(command, args, {
        stdio: ['ignore', read === undefined ? 'inherit' : 'pipe', 'inherit'],
        env: { ...process.env, ...env, PATH: path },
    });
    running.add(child);
    if (read !== undefined && child.stdout !== null) {
        createInterface(child.stdout).on('line', read);
    }

    const [code] = (await once(child, 'close')) as [number | null];
    running.delete(child);
    return code ?? 1;
}

function heading(title: string): void {
    console.log(`\n== ${title}`);
}

function withoutPassword(text: string): string {
    const url = new URL(text);
    url.password = '';
    return url.href;
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
        interrupted = true;
        for (const child of running) {
            child.kill(signal);
        }
    });
}

try {
    process.exitCode = await main();
} catch (error) {
    console.error(`\n${error instanceof Error ? error.message : error}`);
    process.exitCode = 1;
} finally {
    await migrated?.drop();
    await servers?.stop();
    ofPackage?.remove();
    memory?.remove();
}
