import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { until } from '../../adapters/contract/assertions.ts';
import { freePort } from './free-port.ts';
import { inlineCommand, pingRedis } from './ping-redis.ts';

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
    const options = ['--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'yes', ...settings];
    let port = await freePort();
    let server = await launched(port, options).catch(async () => {
        // Somebody else may have taken the port meanwhile.
        port = await freePort();
        return await launched(port, options);
    });

    return {
        url: `redis://127.0.0.1:${port}`,
        command: (text) => inlineCommand(port, text),

        async start() {
            server = running(server) ? server : await launched(port, options);
        },

        async kill() {
            if (running(server)) {
                const exited = once(server, 'exit');
                server.kill('SIGKILL');
                await exited;
            }
        },
    };
}

async function launched(port: number, options: readonly string[]): Promise<ChildProcess> {
    const server = spawn(process.env.REDIS_SERVER ?? 'redis-server', ['--port', String(port), ...options], { stdio: 'ignore' });
    // Rejects when there is no such program.
    const ended = once(server, 'exit').then(([code]) => Promise.reject(new Error(`redis-server ended with ${code}`)));
    await Promise.race([ended, until(() => pingRedis(port))]);
    return server;
}

function running({ exitCode, signalCode }: ChildProcess): boolean {
    return exitCode === null && signalCode === null;
}
