/*
 * Runs the compiled command once for each `Run` that it is sent, until it is to end, through the entry that a shell starts, and answers with what each
 * said and would have left with. To start Node and to load a command takes most of the time of a short one.
 */
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { END, ENTRY, type Ran, type Run } from './scanwire.ts';

const { stdout, stderr, exit } = process;
const writes = { stdout: stdout.write.bind(stdout), stderr: stderr.write.bind(stderr) };
const own = { PATH: process.env.PATH, HOME: process.env.HOME };
stdout.setMaxListeners(0);
stderr.setMaxListeners(0);
// A command that has failed ends its process after a while; here others follow it, and the process ends when none of them has left anything open.
process.exit = ((code?: number) => {
    process.exitCode = code ?? process.exitCode;
}) as typeof exit;

/** What is left to end by itself, in milliseconds. */
const PATIENCE = 10_000;

/** Bytes that a pipe hands over at once. */
const PIPE = 65_536;

let count = 0;
let ends = false;
process.on('message', async (run: Run | typeof END) => {
    if (run !== END) {
        process.send?.(await ran(run));
        return;
    }

    ends = true;
    setTimeout(() => {
        stderr.write(`Left open: ${process.getActiveResourcesInfo().join(', ')}\n`);
        exit(1);
    }, PATIENCE).unref();
    process.disconnect();
});
// Whose test is over ends with it.
process.on('disconnect', () => ends || exit(1));

async function ran({ args, env = {}, cwd, input }: Run): Promise<Ran> {
    process.argv = [process.execPath, ENTRY, ...args];
    process.env = { ...own, ...env };
    process.chdir(cwd);
    Object.defineProperty(process, 'stdin', { value: Readable.from(piecesOf(Buffer.from(input ?? []))), configurable: true });
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
    // What is written from now on is nobody's, and is seen at the end.
    stdout.write = writes.stdout;
    stderr.write = writes.stderr;
    return { code, ...said };
}

/** At most as long as those of a pipe. */
function* piecesOf(bytes: Buffer): Generator<Buffer> {
    for (let at = 0; at < bytes.length; at += PIPE) {
        yield bytes.subarray(at, at + PIPE);
    }
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
