/*
 * Runs the compiled command once for each of the `Run`s in its only argument, one after the other, through the entry that a shell starts, and prints
 * what each of them said and would have left with. To start Node and to load a command takes most of the time of one that refuses.
 */
import { pathToFileURL } from 'node:url';
import { ENTRY, type Ran, type Run } from './scanwire.ts';

const runs = JSON.parse(process.argv[2] ?? '[]') as readonly Run[];
const { stdout, stderr, exit } = process;
const [writeOut, writeErr] = [stdout.write, stderr.write];
stdout.setMaxListeners(runs.length + 1);
// A command that has failed ends its process after a while; here others follow it. The last one's may end this.
process.exit = (() => {}) as unknown as typeof exit;

const ran: Ran[] = [];
for (const [index, { args, env = {}, cwd }] of runs.entries()) {
    process.argv = [process.execPath, ENTRY, ...args];
    process.env = { PATH: process.env.PATH, HOME: process.env.HOME, ...env };
    process.chdir(cwd ?? process.cwd());
    const said = { stdout: '', stderr: '' };
    stdout.write = collecting((text) => {
        said.stdout += text;
    });
    stderr.write = collecting((text) => {
        said.stderr += text;
    });
    // A module of its own for each.
    await import(`${pathToFileURL(ENTRY).href}?${index}`);
    ran.push({ code: Number(process.exitCode ?? 0), ...said });
    process.exitCode = undefined;
}

[stdout.write, stderr.write, process.exit] = [writeOut, writeErr, exit];
stdout.write(JSON.stringify(ran));

/** In place of `write` of a stream. */
function collecting(take: (text: string) => void): typeof stdout.write {
    return (chunk: string | Uint8Array, ...more: unknown[]): boolean => {
        take(String(chunk));
        const done = more.find((argument) => typeof argument === 'function');
        done?.();
        return true;
    };
}
