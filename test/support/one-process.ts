/*
 * Runs the compiled command once for each `Run` that it is sent, until it is to end, through the entry that a shell starts, and answers with what each
 * said and would have left with. To start Node and to load a command takes most of the time of a short one.
 */
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { END, ENTRY, type Ran, type Run } from './scanwire.ts';

const { stdout, stderr, exit } = process;
const own = { PATH: process.env.PATH, HOME: process.env.HOME };
stdout.setMaxListeners(0);
// A command that has failed ends its process after a while; here others follow it. The last one's may end this.
process.exit = (() => {}) as unknown as typeof exit;

let count = 0;
process.on('message', async (run: Run | typeof END) => {
    if (run === END) {
        process.exit = exit;
        process.disconnect();
    } else {
        process.send?.(await ran(run));
    }
});

async function ran({ args, env = {}, cwd, input }: Run): Promise<Ran> {
    process.argv = [process.execPath, ENTRY, ...args];
    process.env = { ...own, ...env };
    process.chdir(cwd);
    Object.defineProperty(process, 'stdin', { value: Readable.from(input === undefined ? [] : [Buffer.from(input)]), configurable: true });
    const said = { stdout: '', stderr: '' };
    stdout.write = collecting((text) => {
        said.stdout += text;
    });
    stderr.write = collecting((text) => {
        said.stderr += text;
    });
    // A module of its own for each.
    count += 1;
    await import(`${pathToFileURL(ENTRY).href}?${count}`);
    const code = Number(process.exitCode ?? 0);
    process.exitCode = undefined;
    return { code, ...said };
}

/** In place of `write` of a stream. */
function collecting(take: (text: string) => void): typeof stdout.write {
    const decoder = new TextDecoder();
    return (chunk: string | Uint8Array, ...more: unknown[]): boolean => {
        take(typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true }));
        const done = more.find((argument) => typeof argument === 'function');
        done?.();
        return true;
    };
}
