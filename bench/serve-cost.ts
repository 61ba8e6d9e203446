import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface ServeFigures {
    readonly firstStartMs: number;
    readonly laterStartMs: number;
    readonly idleMiB: number;
    readonly [figure: string]: number;
}

const READY = /https:\/\/127\.0\.0\.1:\d+/;

/** Cold start of `scanwire serve` on an empty folder and again on the same one, and what it holds when idle. */
export async function serveCost(): Promise<ServeFigures> {
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
    try {
        const first = await serveOnce(folder);
        const later = await serveOnce(folder);
        return { firstStartMs: first.startMs, laterStartMs: later.startMs, idleMiB: later.idleMiB };
    } finally {
        await rm(folder, { recursive: true });
    }
}

async function serveOnce(folder: string): Promise<{ startMs: number; idleMiB: number }> {
    const cli = fileURLToPath(new URL('../cli/scanwire.js', import.meta.url));
    const started = performance.now();
    const { DATABASE_URL, REDIS_URL, ...env } = process.env;
    const server = spawn(process.execPath, [cli, 'serve', '--data', folder, '--port', '0'], { stdio: ['ignore', 'pipe', 'inherit'], env });
    const ended = new Promise((resolve) => server.once('close', resolve));
    await new Promise<void>((resolve, reject) => {
        let output = '';
        server.stdout.on('data', (chunk) => {
            output += chunk;
            if (READY.test(output)) {
                resolve();
            }
        });
        server.once('close', () => reject(new Error(`serve ended: ${output}`)));
    });
    const startMs = performance.now() - started;
    await new Promise((resolve) => setTimeout(resolve, 3000));
    const idleMiB = await residentMiB(server.pid ?? 0);
    server.kill('SIGTERM');
    await ended;
    return { startMs, idleMiB };
}

async function residentMiB(pid: number): Promise<number> {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}
