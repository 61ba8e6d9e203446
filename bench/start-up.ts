import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuTimes } from './cpu-time.ts';
import { child, memoryMiB } from './processes.ts';
import type { Figures, Section } from './section.ts';

/** What plugins add to the start of a hapi server. */
export const host: Section = {
    name: 'host',
    discarded: 1,

    async open({ own }) {
        const options = { execArgv: ['--expose-gc'] };
        return {
            measurements: [
                {
                    title: 'hapi server with token-auth and rest-api-v2',
                    figures: {
                        startMs: { label: 'ms to the first answer' },
                        cpuMs: { label: 'CPU until then, ms' },
                        rssMiB: { label: 'memory, MiB' },
                        modules: { label: 'CommonJS modules loaded' },
                        heavy: { label: 'of them queue, database driver or HTTP client' },
                    },
                    scanwire: async (checkout) => () => child(checkout, 'host', { ...options, args: ['plugins'] }),
                    peers: async () => [
                        { name: 'bare hapi', run: () => child(own, 'host', { ...options, args: ['bare'] }) },
                        { name: 'hapi and joi', run: () => child(own, 'host', { ...options, args: ['joi'] }) },
                    ],
                },
            ],
        };
    },
};

/** Cold start of `scanwire serve` on an empty folder and again on the same one, and what it holds when idle. */
export const serve: Section = {
    name: 'serve',
    discarded: 0,

    async open() {
        return {
            measurements: [
                {
                    title: 'scanwire serve',
                    figures: {
                        firstStartMs: { label: 'first start on an empty folder, ms' },
                        firstCpuMs: { label: 'CPU of the first start, ms' },
                        laterStartMs: { label: 'later starts, ms' },
                        laterCpuMs: { label: 'CPU of later starts, ms' },
                        idleMiB: { label: 'idle memory, MiB' },
                    },
                    scanwire:
                        async ({ program }) =>
                        () =>
                            twoStarts(program),
                },
            ],
        };
    },
};

async function twoStarts(program: string): Promise<Figures> {
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
    try {
        const first = await startOnce(program, folder);
        const later = await startOnce(program, folder);
        return {
            firstStartMs: first.startMs,
            firstCpuMs: first.cpuMs,
            laterStartMs: later.startMs,
            laterCpuMs: later.cpuMs,
            idleMiB: later.idleMiB,
        };
    } finally {
        await rm(folder, { recursive: true });
    }
}

const READY = /https:\/\/127\.0\.0\.1:\d+/;
/** Until what was needed for the start has been let go. */
const SETTLING = 3_000;

async function startOnce(program: string, folder: string): Promise<{ startMs: number; cpuMs: number; idleMiB: number }> {
    const started = performance.now();
    const { DATABASE_URL, REDIS_URL, ...env } = process.env;
    const args = [program, 'serve', '--data', folder, '--port', '0'];
    const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env });
    const ended = once(server, 'close');
    const pid = server.pid as number;
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
    const { server: cpu = 0 } = await cpuTimes({ server: pid });
    await sleep(SETTLING);
    const idleMiB = await memoryMiB(pid, 'VmRSS');
    server.kill('SIGTERM');
    await ended;
    return { startMs, cpuMs: cpu / 1000, idleMiB };
}
