import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface ChildOptions {
    readonly args?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
    readonly execArgv?: readonly string[];
    /** Keeps all its threads on one core, by `taskset` of util-linux. */
    readonly oneCore?: boolean;
}

/**
 * Runs one measurement in a fresh process and returns what its last line of output says, as JSON.
 *
 * @param script Path of the compiled script, relative to this folder.
 */
export function child<Result>(script: string, { args = [], env = {}, execArgv = [], oneCore = false }: ChildOptions = {}): Promise<Result> {
    const path = fileURLToPath(new URL(script, import.meta.url));
    return new Promise((resolve, reject) => {
        const command = [process.execPath, ...execArgv, path, ...args];
        const [program = '', ...rest] = oneCore ? ['taskset', '-c', '0', ...command] : command;
        const process_ = spawn(program, rest, {
            stdio: ['ignore', 'pipe', 'inherit'],
            env: { ...process.env, ...env },
        });
        let output = '';
        process_.stdout.on('data', (chunk) => {
            output += chunk;
        });
        process_.on('error', reject);
        process_.on('close', (code) => {
            const last = output.trim().split('\n').at(-1) ?? '';
            if (code === 0 && last !== '') {
                resolve(JSON.parse(last));
            } else {
                reject(new Error(`${script} ${args.join(' ')} ended with ${code}: ${output.slice(-2000)}`));
            }
        });
    });
}
