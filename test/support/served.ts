import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { linesOf, nextJson, scanwire, startScanwire } from './scanwire.ts';

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

/** What a command prints with `--json`. */
export async function json<T = Record<string, unknown>>(data: string, ...args: string[]): Promise<T> {
    const { code, stdout, stderr } = await scanwire([...args, '--data', data, '--json']);
    if (code !== 0) {
        throw new Error(stderr);
    }

    return JSON.parse(stdout) as T;
}
