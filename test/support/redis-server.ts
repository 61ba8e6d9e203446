import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePort } from './free-port.ts';
import { inlineCommand, pingRedis } from './ping-redis.ts';
import { until } from './until.ts';

/** A Redis of the test's own, which it may stop, flush and misconfigure. */
export interface RedisServer {
    readonly url: string;
    /** Sends one command in the inline form and resolves with the raw reply. */
    command(text: string): Promise<string>;
    start(): Promise<void>;
    /** SIGKILL, as when the machine goes away. */
    kill(): Promise<void>;
}

/** @param folder Where it keeps its append-only file. */
export async function redisServer(folder: string, settings: readonly string[] = []): Promise<RedisServer> {
    const port = await freePort();
    const program = process.env.REDIS_SERVER ?? 'redis-server';
    let server: ChildProcess | undefined;
    const all = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'yes', ...settings];

    const redis: RedisServer = {
        url: `redis://127.0.0.1:${port}`,
        command: (text) => inlineCommand(port, text),

        async start() {
            if (running(server)) {
                return;
            }

            server = spawn(program, all, { stdio: 'ignore' });
            const failed = once(server, 'error').then(([error]) => Promise.reject(error));
            await Promise.race([failed, until(() => pingRedis(port))]);
        },

        async kill() {
            if (running(server)) {
                const exited = once(server, 'exit');
                server.kill('SIGKILL');
                await exited;
            }
        },
    };
    await redis.start();
    return redis;
}

function running(server: ChildProcess | undefined): server is ChildProcess {
    return server !== undefined && server.exitCode === null && server.signalCode === null;
}
