import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../adapters/contract/assertions.ts';
import { type RedisServer, redisServer } from './redis-server.ts';
import { tcpProxy } from './tcp-proxy.ts';

/**
 * A Redis and its replica behind one address, which leads each new connection to the one that is the master then, as the address of a
 * service with fail-over does. Commands, and what else happens to a server, are the master's.
 */
export interface RedisPair extends RedisServer {
    /** The replica, with what it has got until now, becomes the master; the other one is its replica from now on, started again if it was killed. */
    promoteReplica(): Promise<void>;
    /** Ends both. */
    close(): Promise<void>;
}

/** The replica asks for all that there is at once. */
const REPLICATION = ['--repl-diskless-sync-delay', '0'];

/** @param folder Where each has a folder of its own. */
export async function redisPair(folder: string, settings: readonly string[] = []): Promise<RedisPair> {
    const servers = await Promise.all(
        ['redis-1', 'redis-2'].map(async (name) => {
            mkdirSync(join(folder, name));
            return await redisServer(join(folder, name), [...settings, ...REPLICATION]);
        }),
    );
    let [master, replica] = servers as [RedisServer, RedisServer];
    const addressOf = ({ url }: RedisServer): { readonly host: string; readonly port: number } => {
        const { hostname, port } = new URL(url);
        return { host: hostname, port: Number(port) };
    };
    const follow = async (): Promise<void> => {
        const { host, port } = addressOf(master);
        await replica.command(`REPLICAOF ${host} ${port}`);
    };
    const front = await tcpProxy(() => addressOf(master));
    await follow();
    await until(async () => (await replica.command('INFO replication')).includes('master_link_status:up'));

    return {
        url: `redis://127.0.0.1:${front.port}`,
        command: (text) => master.command(text),
        start: () => master.start(),
        kill: () => master.kill(),
        fillDisk: (full) => master.fillDisk(full),

        async promoteReplica() {
            await replica.command('REPLICAOF NO ONE');
            [master, replica] = [replica, master];
            await replica.start();
            await follow();
        },

        async close() {
            await front.close();
            await Promise.all(servers.map((server) => server.kill()));
        },
    };
}
