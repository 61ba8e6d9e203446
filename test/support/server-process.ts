import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';

export interface ServerProcessOptions {
    readonly program: string;
    readonly args: readonly string[];
    readonly cwd: string;
    /** Another user to run as, where the present one is root. */
    readonly user?: { readonly uid: number; readonly gid: number };
    /** Asks the server to end; it is killed when it has not ended soon. */
    readonly stopSignal: NodeJS.Signals;
    /** Whether it serves by now. */
    answers(): Promise<boolean>;
}

export interface ServerProcess {
    readonly id: number;
    /** Ends it by its `stopSignal`, or by another. */
    stop(signal?: NodeJS.Signals): Promise<void>;
}

const START_TIMEOUT = 60_000;
const STOP_TIMEOUT = 10_000;

/**
 * Starts a server and resolves when it answers. It runs in a process group of its own, so that Ctrl-C reaches it through
 * `stop` and not before the tests that use it.
 *
 * @throws Error with what it printed, when it ends by itself or never answers.
 */
export async function startServer({ program, args, cwd, user, stopSignal, answers }: ServerProcessOptions): Promise<ServerProcess> {
    const server = spawn(program, args, {
        cwd,
        ...user,
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { PATH: process.env.PATH, LC_ALL: 'C' },
    });
    const printed = tail(server);
    const stop = (signal = stopSignal): Promise<void> => ended(server, signal);

    let failure: Error | undefined;
    server.on('error', (error) => {
        failure = error;
    });
    const giveUp = Date.now() + START_TIMEOUT;
    while (!(await answers().catch(() => false))) {
        if (failure !== undefined || !isRunning(server) || Date.now() > giveUp) {
            await stop();
            throw new Error(`${program} did not start: ${failure?.message ?? printed()}`);
        }

        await wait(50);
    }

    return { id: server.pid as number, stop };
}

function tail({ stdout, stderr }: ChildProcess): () => string {
    let text = '';
    for (const stream of [stdout, stderr]) {
        stream?.on('data', (chunk: Buffer) => {
            text = (text + chunk.toString()).slice(-2_000);
        });
    }

    return () => text;
}

function isRunning(server: ChildProcess): boolean {
    return server.pid !== undefined && server.exitCode === null && server.signalCode === null;
}

async function ended(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
    if (!isRunning(server)) {
        return;
    }

    const exited = once(server, 'exit');
    const killer = setTimeout(() => server.kill('SIGKILL'), STOP_TIMEOUT);
    server.kill(signal);
    await exited;
    clearTimeout(killer);
}
