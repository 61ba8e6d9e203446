import { type ChildProcess, spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** A server in a process of its own, up from the first line that it prints. */
export interface Background {
    readonly firstLine: string;
    /** The most memory it has held since the last call of `resetPeak`, in MiB. */
    peakMiB(): Promise<number>;
    resetPeak(): Promise<void>;
    stop(): Promise<void>;
}

/** @param script Path of the compiled script, relative to this folder. */
export async function background(script: string, args: readonly string[] = []): Promise<Background> {
    const server = spawn(process.execPath, [fileURLToPath(new URL(script, import.meta.url)), ...args], {
        stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = new Promise<void>((resolve) => {
        server.once('close', () => resolve());
    });
    const firstLine = await lineOf(server);
    return {
        firstLine,

        async peakMiB() {
            const status = await readFile(`/proc/${server.pid}/status`, 'utf8');
            return Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1]) / 1024;
        },

        async resetPeak() {
            await writeFile(`/proc/${server.pid}/clear_refs`, '5');
        },

        async stop() {
            server.kill('SIGKILL');
            await ended;
        },
    };
}

function lineOf(server: ChildProcess): Promise<string> {
    return new Promise((resolve, reject) => {
        let output = '';
        server.stdout?.on('data', (chunk) => {
            output += chunk;
            const end = output.indexOf('\n');
            if (end >= 0) {
                resolve(output.slice(0, end));
            }
        });
        server.once('close', (code) => reject(new Error(`${server.spawnargs[1]} ended with ${code}`)));
    });
}
