import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { findRedis } from './find-program.ts';
import { freePort } from './free-port.ts';
import { limitFiles } from './full-disk.ts';
import { inlineCommand, pingRedis } from './ping-redis.ts';

/** A Redis of the test's own, which it may stop, flush and misconfigure. */
export interface RedisServer {
    readonly url: string;
    /** Sends one command in the inline form and resolves with the raw reply. */
    command(text: string): Promise<string>;
    start(): Promise<void>;
    /** SIGKILL, as when the machine goes away. */
    kill(): Promise<void>;
    /** From now on nothing can be written to its disk, or everything again. */
    fillDisk(full: boolean): Promise<void>;
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

        fillDisk: (full) => limitFiles(server.pid as number, full ? 1 : null),
    };
}

/** The servers of a cluster, each with a third of the slots; resolves with their ports once each knows that of the others. */
export async function redisCluster(t: Test, folder: string): Promise<readonly number[]> {
    const nodes = await Promise.all(
        [0, 1, 2].map(async (index) => {
            const own = join(folder, `node-${index}`);
            await mkdir(own);
            const busPort = await freePort();
            const server = await redisServer(own, ['--cluster-enabled', 'yes', '--cluster-port', String(busPort)]);
            t.teardown(() => server.kill());
            const first = Math.ceil((index * SLOTS) / 3);
            await server.command(`CLUSTER ADDSLOTSRANGE ${first} ${Math.ceil(((index + 1) * SLOTS) / 3) - 1}`);
            return { server, port: Number(new URL(server.url).port), busPort };
        }),
    );
    for (const { server } of nodes) {
        for (const { port, busPort } of nodes) {
            await server.command(`CLUSTER MEET 127.0.0.1 ${port} ${busPort}`);
        }
    }
    const knowsAll = async ({ server }: (typeof nodes)[number]): Promise<boolean> => {
        const info = await server.command('CLUSTER INFO');
        return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3');
    };
    await until(async () => (await Promise.all(nodes.map(knowsAll))).every(Boolean));
    return nodes.map(({ port }) => port);
}

const SLOTS = 16_384;

/** A Sentinel that watches the server by this name; resolves with its port. */
export async function redisSentinel(t: Test, folder: string, name: string, { url }: RedisServer): Promise<number> {
    const file = join(folder, 'sentinel.conf');
    await writeFile(file, `sentinel monitor ${name} 127.0.0.1 ${new URL(url).port} 1\n`);
    const port = await freePort();
    const sentinel = await launched(port, [file, '--sentinel', '--bind', '127.0.0.1']);
    t.teardown(() => sentinel.kill('SIGKILL'));
    return port;
}

/** A write that is too much for the disk fails, and does not end the server by a signal. */
const FAILING_WRITES = 'trap "" XFSZ; exec "$0" "$@"';

async function launched(port: number, options: readonly string[]): Promise<ChildProcess> {
    const program = process.env.REDIS_SERVER ?? findRedis() ?? 'redis-server';
    const server = spawn('sh', ['-c', FAILING_WRITES, program, ...options, '--port', String(port)], { stdio: 'ignore' });
    // Rejects when there is no such program.
    const ended = once(server, 'exit').then(([code]) => Promise.reject(new Error(`redis-server ended with ${code}`)));
    await Promise.race([ended, until(() => pingRedis(port))]);
    return server;
}

function running({ exitCode, signalCode }: ChildProcess): boolean {
    return exitCode === null && signalCode === null;
}
