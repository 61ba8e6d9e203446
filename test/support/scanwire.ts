import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Path of the compiled command. */
export const ENTRY: string = fileURLToPath(new URL('../../cli/scanwire.js', import.meta.url));

const ONE_PROCESS = fileURLToPath(new URL('./one-process.js', import.meta.url));

/**
 * How Node runs what ends soon. The embedded database is WebAssembly, which V8 compiles twice: at once, and well. A test ends soon after the second is
 * done, and a command of it before, but pays for it (measured, processor time: a first start 8.1 s, 4.4 s with this; all migrations 1.7 s, 0.5 s).
 * JavaScript is compiled well when it has run four times as long as usual: most of a test runs too seldom to earn it (a tenth of most files' time).
 * What of the database is never called need not be checked either (a seventh of opening one in memory).
 */
export const SHORT_LIVED: readonly string[] = ['--liftoff-only', '--interrupt-budget=300000', '--wasm-lazy-validation'];

/** Node, quick to start. */
export const QUICK_NODE: readonly [program: string, ...args: string[]] = [process.execPath, ...SHORT_LIVED];

/** Loaded before what is covered; writes into the folder of `COVERAGE_FOLDER` what was reached. */
export const GATHERER: string = fileURLToPath(new URL('./coverage-gatherer.js', import.meta.url));

/** Outside of `test/cli/` commands reach no lines that tests do not, and gathering them takes time. */
const COVERAGE = `${process.argv[1]}\n${process.env.TEST_FILES}`.includes(join('test', 'cli', ''))
    ? process.env.COVERAGE_FOLDER
    : undefined;

export interface Ran {
    readonly code: number | null;
    readonly stdout: string;
    readonly stderr: string;
}

export interface RunOptions {
    /** Instead of the test's own environment, which names servers that a command would use. */
    readonly env?: Readonly<Record<string, string>>;
    readonly input?: string | Uint8Array;
    readonly cwd?: string;
}

/** Runs the compiled command in a process of its own, without any server unless `env` names one. */
export async function scanwire(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    return await ranBy(startScanwire(args, options), options.input);
}

/** One of several commands in one process. */
export interface Run extends RunOptions {
    readonly args: readonly string[];
    readonly cwd: string;
}

/** Ends a process of commands. */
export const END = 'end';

/** {@link scanwire} of one process, for commands that say something or refuse; they wait for each other. */
export interface Commands {
    run(args: readonly string[], options?: RunOptions): Promise<Ran>;
    /** @throws Error when it has not ended well, by itself: none of them may leave something open. */
    end(): Promise<void>;
}

export function commandsInOneProcess(): Commands {
    const child = startOwn([ONE_PROCESS], {}, 'ipc');
    const whole = ranBy(child);
    let last: Promise<unknown> = Promise.resolve();
    return {
        run(args, options = {}) {
            const ran = last.then(async () => {
                child.send({ cwd: process.cwd(), ...options, args });
                const [answer] = await Promise.race([once(child, 'message'), whole.then(failed)]);
                return answer as Ran;
            });
            last = ran.catch(() => {});
            return ran;
        },
        async end() {
            await last;
            // It disconnects: Node emits no `close` where this side does.
            // One that has died cannot be told, and says why below.
            child.send(END, () => undefined);
            const { code, stdout, stderr } = await whole;
            if (code !== 0 || stdout !== '' || stderr !== '') {
                failed({ code, stdout, stderr });
            }
        },
    };
}

function failed({ code, stdout, stderr }: Ran): never {
    throw new Error(`The process of commands ended with ${code}: ${stdout}${stderr}`);
}

/** All of them in one process. */
export async function scanwireEach(runs: readonly (Omit<Run, 'cwd'> & { readonly cwd?: string })[]): Promise<readonly Ran[]> {
    const commands = commandsInOneProcess();
    const ran = await Promise.all(runs.map(({ args, ...options }) => commands.run(args, options)));
    await commands.end();
    return ran;
}

async function ranBy(child: ChildProcess, input?: string | Uint8Array): Promise<Ran> {
    const output = { stdout: '', stderr: '' };
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        output.stdout += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        output.stderr += text;
    });
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, ...output };
}

/** One that goes on running: wait for {@link nextJson}, then signal it. */
export function startScanwire(args: readonly string[], options: RunOptions = {}): ChildProcess {
    return startOwn([ENTRY, ...args], options);
}

function startOwn(args: readonly string[], { env = {}, cwd }: RunOptions, ...channel: readonly 'ipc'[]): ChildProcess {
    const gatherer = COVERAGE === undefined ? [] : ['--import', GATHERER];
    return spawnNode([...gatherer, ...args], {
        env: { PATH: process.env.PATH, HOME: process.env.HOME, ...(COVERAGE !== undefined && { COVERAGE_FOLDER: COVERAGE }), ...env },
        ...(cwd !== undefined && { cwd }),
        stdio: ['pipe', 'pipe', 'pipe', ...channel],
        // Bytes stay bytes.
        serialization: 'advanced',
    });
}

/** A server of a test ends before code pays that has run ten times as long as what tests compile well (a tenth of its time). */
const OF_A_TEST = '--interrupt-budget=3000000';

/** A process of {@link QUICK_NODE}, whose work is to start. */
export function spawnNode(args: readonly string[], options: SpawnOptions): ChildProcess {
    const [program, ...first] = QUICK_NODE;
    return spawn(program, [...first, OF_A_TEST, ...args], options);
}

/** The lines of its output as they come. */
export async function* linesOf(child: ChildProcess): AsyncGenerator<string, void, undefined> {
    let text = '';
    for await (const part of child.stdout?.setEncoding('utf8') ?? []) {
        text += part;
        for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n')) {
            yield text.slice(0, end);
            text = text.slice(end + 1);
        }
    }
}

/** Its next line as JSON. Fails with what it said on stderr when it ends without one. */
export async function nextJson(child: ChildProcess, lines: AsyncGenerator<string, void, undefined>): Promise<Record<string, unknown>> {
    let said = '';
    child.stderr?.on('data', (text) => {
        said += text;
    });
    const { value, done } = await lines.next();
    if (done === true) {
        throw new Error(`It ended without a line: ${said}`);
    }

    return JSON.parse(value) as Record<string, unknown>;
}

/** Signals it and answers with its exit code. */
export async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
    const exited = once(child, 'exit') as Promise<[number | null]>;
    child.kill(signal);
    return (await exited)[0];
}

/**
 * Signals it by SIGTERM, and answers with its exit code and how many seconds later it has ended than a process that does nothing but wait for so many
 * seconds from the same moment on: a busy machine holds up both.
 */
export async function endedWithin(child: ChildProcess, seconds: number): Promise<{ readonly code: number | null; readonly late: number }> {
    const waits = `process.on('SIGTERM', () => setTimeout(process.exit, ${seconds * 1000}, 0)); console.log(); setInterval(() => {}, 60_000)`;
    const other = spawnNode(['--eval', waits], { stdio: ['ignore', 'pipe', 'inherit'], env: {} });
    await once(other.stdout as NodeJS.ReadableStream, 'data');
    const end = async (one: ChildProcess) => ({ code: await ended(one, 'SIGTERM'), at: performance.now() });
    const [own, beside] = await Promise.all([end(child), end(other)]);
    return { code: own.code, late: (own.at - beside.at) / 1000 };
}
