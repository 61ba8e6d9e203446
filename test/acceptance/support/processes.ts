import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { spawnNode } from '../../support/scanwire.ts';

const CLI = fileURLToPath(new URL('../../../../dist/cli/scanwire.js', import.meta.url));
const RECEIVER = fileURLToPath(new URL('./receiver.js', import.meta.url));

export interface Ended {
    readonly code: number | null;
    readonly stdout: string;
    readonly stderr: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Runs the built command to its end. */
export async function scanwire(args: readonly string[], { env = {}, input }: { env?: Environment; input?: string } = {}): Promise<Ended> {
    const child = spawnNode([CLI, ...args], {
        env: environment(env),
        stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    child.stdin?.end(input);
    const [stdout, stderr] = [collected(child.stdout), collected(child.stderr)];
    const [code] = await once(child, 'close');
    return { code, stdout: stdout(), stderr: stderr() };
}

/** Runs the built command with `--json`, which must succeed. */
export async function json<Answer>(args: readonly string[], options: { env?: Environment; input?: string } = {}): Promise<Answer> {
    const { code, stdout, stderr } = await scanwire([...args, '--json'], options);
    if (code !== 0) {
        throw new Error(`scanwire ${args.join(' ')} ended with ${code}: ${stderr}`);
    }

    return JSON.parse(stdout);
}

export interface Running {
    readonly child: ChildProcess;
    readonly pid: number;
    /** All output so far. */
    output(): string;
    /** Resolves with the exit code. */
    stop(signal: NodeJS.Signals): Promise<number | null>;
}

/** Starts the built command and waits until its output matches. It is killed when the test ends. */
export async function start(t: Test, args: readonly string[], ready: RegExp, env: Environment = {}): Promise<Running> {
    const child = spawnNode([CLI, ...args], { env: environment(env), stdio: ['ignore', 'pipe', 'pipe'] });
    t.teardown(() => child.kill('SIGKILL'));
    const ended = once(child, 'close');
    const [stdout, stderr] = [collected(child.stdout), collected(child.stderr)];
    const output = (): string => stdout() + stderr();
    await new Promise<void>((resolve, reject) => {
        const look = (): void => (ready.test(output()) ? resolve() : undefined);
        child.stdout?.on('data', look);
        child.stderr?.on('data', look);
        void ended.then(([code]) => reject(new Error(`scanwire ${args.join(' ')} ended with ${code}: ${output()}`)));
    });
    return {
        child,
        pid: child.pid ?? 0,
        output,
        async stop(signal) {
            child.kill(signal);
            const [code] = await ended;
            return code;
        },
    };
}

export interface Serving extends Running {
    /** `https://127.0.0.1:PORT`. */
    readonly origin: string;
}

export async function serve(
    t: Test,
    data: string,
    { args = [], env = {} }: { args?: readonly string[]; env?: Environment } = {},
): Promise<Serving> {
    const running = await start(t, ['serve', '--data', data, '--port', '0', ...args], /https:\/\/127\.0\.0\.1:\d+\D/, env);
    const [origin = ''] = /https:\/\/127\.0\.0\.1:\d+/.exec(running.output()) ?? [];
    return { ...running, origin };
}

export interface Message {
    readonly method: string;
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    /** Exact bytes, base64. */
    readonly body: string;
}

export interface ReceiverProcess {
    readonly url: string;
    messages(): readonly Message[];
    /** The distinct investigations among the messages. */
    investigations(): ReadonlySet<string>;
    /** Resolves once it holds back an answer. */
    holding(): Promise<void>;
    /** Answers what it held back, and all that comes. */
    release(): void;
}

/** A receiver in a process of its own that answers so many messages and holds back the answers of all later ones. */
export async function receiver(t: Test, folder: string, answered: number = Number.POSITIVE_INFINITY): Promise<ReceiverProcess> {
    const file = join(folder, 'messages.jsonl');
    writeFileSync(file, '');
    const child = spawn(process.execPath, [RECEIVER, file, String(answered)], { stdio: ['pipe', 'pipe', 'inherit'] });
    t.teardown(() => child.kill('SIGKILL'));
    const [port] = await once(child.stdout, 'data');
    // The receiver may be in the middle of a line: what follows the last line's end is not there yet.
    const messages = (): readonly Message[] =>
        readFileSync(file, 'utf8')
            .split('\n')
            .slice(0, -1)
            .map((line) => JSON.parse(line));
    return {
        url: `http://127.0.0.1:${String(port).trim()}/hook?of=test`,
        messages,
        investigations: () =>
            new Set(
                messages()
                    .filter(({ headers }) => headers['x-vendor-event'] === 'idr_investigation_created')
                    .map(({ body }) => JSON.parse(Buffer.from(body, 'base64').toString()).investigationId),
            ),
        holding: () => until(() => messages().length > answered),
        release: () => void child.stdin.write('\n'),
    };
}

/** The environment of a deployment: nothing of the test runner's own servers unless it is given. */
function environment(env: Environment): NodeJS.ProcessEnv {
    const { DATABASE_URL, REDIS_URL, SCANWIRE_EGRESS_ALLOW, SCANWIRE_KEY_RING, NODE_OPTIONS, ...own } = process.env;
    return { ...own, ...env };
}

function collected(stream: NodeJS.ReadableStream | null): () => string {
    let text = '';
    stream?.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
    });
    return () => text;
}
