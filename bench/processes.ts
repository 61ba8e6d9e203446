import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Checkout } from './checkout.ts';

export interface ProcessOptions {
    readonly args?: readonly string[];
    readonly execArgv?: readonly string[];
    /** Besides those of this process. */
    readonly env?: Readonly<Record<string, string>>;
    /** Keeps all its threads on one core, by `taskset` of util-linux. */
    readonly oneCore?: boolean;
}

/**
 * Runs one measurement in a fresh process and returns what its last line of output says, as JSON.
 *
 * @param contender Name of its file in `contenders/`.
 */
export async function child<Result>(checkout: Checkout, contender: string, options: ProcessOptions = {}): Promise<Result> {
    const running = start(checkout, contender, options);
    let output = '';
    running.stdout?.on('data', (chunk) => {
        output += chunk;
    });
    const [code] = await once(running, 'close');
    const last = output.trim().split('\n').at(-1) ?? '';
    if (code !== 0 || last === '') {
        throw new Error(`${running.spawnargs.join(' ')} ended with ${code}: ${output.slice(-2000)}`);
    }

    return JSON.parse(last) as Result;
}

/** A server in a process of its own, up from the first line that it prints. */
export interface Background {
    readonly pid: number;
    readonly firstLine: string;
    /** The most memory it has held since its start or the last call of `resetPeak`, in MiB. */
    peakMiB(): Promise<number>;
    resetPeak(): Promise<void>;
    stop(): Promise<void>;
}

/** @param contender Name of its file in `contenders/`. */
export async function background(checkout: Checkout, contender: string, options: ProcessOptions = {}): Promise<Background> {
    const server = start(checkout, contender, options);
    const ended = once(server, 'close');
    const pid = server.pid as number;
    return {
        pid,
        firstLine: await firstLine(server),
        peakMiB: () => memoryMiB(pid, 'VmHWM'),
        resetPeak: () => writeFile(`/proc/${pid}/clear_refs`, '5'),

        async stop() {
            server.kill('SIGTERM');
            await ended;
        },
    };
}

/** What a process holds, or has held at most, in MiB. `maxRSS` of `process.resourceUsage` begins with that of the parent. */
export async function memoryMiB(pid: number, what: 'VmRSS' | 'VmHWM'): Promise<number> {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    return Number(new RegExp(`^${what}:\\s+(\\d+)`, 'm').exec(status)?.[1]) / 1024;
}

function start(
    checkout: Checkout,
    contender: string,
    { args = [], execArgv = [], env = {}, oneCore = false }: ProcessOptions,
): ChildProcess {
    const command = [process.execPath, ...execArgv, join(checkout.bench, 'contenders', `${contender}.js`), ...args];
    const [program = '', ...rest] = oneCore ? ['taskset', '-c', '0', ...command] : command;
    return spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } });
}

/** Rejects when it ends without one. */
export function firstLine(server: ChildProcess): Promise<string> {
    return new Promise((resolve, reject) => {
        let output = '';
        server.stdout?.on('data', (chunk) => {
            output += chunk;
            const end = output.indexOf('\n');
            if (end >= 0) {
                resolve(output.slice(0, end));
            }
        });
        server.once('close', (code) => reject(new Error(`${server.spawnargs.join(' ')} ended with ${code}`)));
    });
}
