import { type ChildProcess, execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { migratedAt } from './migrated-database.ts';
import {
    type Commands,
    commandsInOneProcess,
    linesOf,
    nextJson,
    QUICK_NODE,
    type Ran,
    type RunOptions,
    scanwire,
    startScanwire,
} from './scanwire.ts';

/** Path of a file in `fixtures/`. */
export function fixture(path: string): string {
    return fileURLToPath(new URL(`../../../fixtures/${path}`, import.meta.url));
}

/** What `serve --json` says. */
export interface Served {
    readonly url: string;
    readonly certificate: string;
    readonly pid: number;
    readonly demo: {
        readonly key: { readonly id: string; readonly key: string };
        readonly exporter: { readonly id: string };
        readonly imported: { readonly hosts: { readonly created: number } } | null;
        readonly receiver: string;
        readonly test: { readonly attempt: { readonly code: string } };
        readonly investigation: { readonly verification: { readonly ok: boolean } };
    };
}

/** A data folder of the test's own, its path short enough for a socket. */
export function dataOf(t: Test): string {
    const folder = mkdtempSync(join(tmpdir(), 'scanwire-test-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    return join(folder, 'data');
}

const run = promisify(execFile);

/**
 * A data folder of the test's own like that of {@link dataOf}, of a deployment that was started before and holds nothing yet. It is a copy of one that
 * the first test to need it makes: to write the files of a database and to migrate it takes two seconds of the processor's time, to copy them a third.
 */
export async function usedDataOf(t: Test): Promise<string> {
    const used = join(BUILD, `data-folder-${migratedAt()}`);
    if (!existsSync(used)) {
        await makeUsed(used);
    }

    const data = dataOf(t);
    await run('cp', ['-a', used, data]);
    return data;
}

const BUILD = fileURLToPath(new URL('../..', import.meta.url));

/** Others may make it at the same time; the first to be done gives it its name. */
async function makeUsed(used: string): Promise<void> {
    const unfinished = mkdtempSync(`${used}-`);
    try {
        const folder = join(unfinished, 'data');
        const [program, ...flags] = QUICK_NODE;
        const env = { PATH: process.env.PATH, HOME: process.env.HOME };
        await run(program, [...flags, fileURLToPath(new URL('./first-start.js', import.meta.url)), folder], { env });
        renameSync(folder, used);
    } catch (error) {
        if (!existsSync(used)) {
            throw error;
        }
    } finally {
        rmSync(unfinished, { recursive: true, force: true });
    }
}

/** A server on a free port, killed at the end of the test if it still runs. */
export async function serve(t: Test, data: string, ...more: string[]): Promise<{ readonly server: ChildProcess; readonly served: Served }> {
    return await serveIn(t, {}, data, ...more);
}

/** The same with variables in its environment. */
export async function serveIn(
    t: Test,
    env: Readonly<Record<string, string>>,
    data: string,
    ...more: string[]
): Promise<{ readonly server: ChildProcess; readonly served: Served }> {
    const server = startScanwire(['serve', '--data', data, '--port', '0', '--json', ...more], { env });
    t.teardown(() => server.kill('SIGKILL'));
    return { server, served: (await nextJson(server, linesOf(server))) as unknown as Served };
}

/** Asks the REST API, with the certificate checked. */
export async function get(
    { url, certificate }: Served,
    path: string,
    token: string,
): Promise<{ status: number | undefined; body: string }> {
    return new Promise((resolve, reject) => {
        const outgoing = request(`${url}${path}`, { ca: readFileSync(certificate), headers: { token }, agent: false }, async (incoming) => {
            const parts = await incoming.setEncoding('utf8').toArray();
            resolve({ status: incoming.statusCode, body: parts.join('') });
        });
        outgoing.on('error', reject).end();
    });
}

/** Runs what {@link said} and {@link json} are asked for: all tests of a process by one. */
let commands: Promise<Pick<Commands, 'run'>> | undefined;

async function commandsOfTests(): Promise<Pick<Commands, 'run'>> {
    // Elsewhere nothing says when the last one has run.
    if (process.env.TEST_FILES === undefined) {
        return { run: scanwire };
    }

    const { default: t } = await import('tap');
    const started = commandsInOneProcess();
    t.teardown(started.end);
    return started;
}

/** What a command says that prints something or refuses, and ends: by the process of all such commands. */
export async function said(args: readonly string[], options?: RunOptions): Promise<Ran> {
    commands ??= commandsOfTests();
    return await (await commands).run(args, options);
}

/** What a command prints with `--json`. */
export async function json<T = Record<string, unknown>>(data: string, ...args: string[]): Promise<T> {
    const { code, stdout, stderr } = await said([...args, '--data', data, '--json']);
    if (code !== 0) {
        throw new Error(stderr);
    }

    return JSON.parse(stdout) as T;
}
