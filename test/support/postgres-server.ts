import { spawnSync } from 'node:child_process';
import { chownSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from './free-port.ts';
import { limitFiles } from './full-disk.ts';
import { type ServerProcess, startServer } from './server-process.ts';

/** A PostgreSQL of the test's own. */
export interface PostgresServer {
    readonly url: string;
    /** SIGINT ends every session (`fast`, the default), SIGQUIT the server as a crash does (`immediate`). */
    stop(signal?: 'SIGINT' | 'SIGQUIT'): Promise<void>;
    /** Starts it again on what it has written. */
    start(): Promise<void>;
    /** From now on nothing can be written beyond so many bytes of a file, or everything again (null). */
    limitFiles(bytes: number | null): Promise<void>;
}

export interface PostgresServerOptions {
    /** The folder of `postgres` and `initdb`. */
    readonly programs: string;
    /** Such as `fsync=off`. */
    readonly settings: readonly string[];
    /** More of what `initdb` is told. */
    readonly init?: readonly string[];
}

/** @param folder Where it keeps its data, in a folder of its own. */
export async function postgresServer(folder: string, { programs, settings, init = [] }: PostgresServerOptions): Promise<PostgresServer> {
    const data = join(folder, 'postgres');
    const user = process.getuid?.() === 0 ? unprivilegedUser() : undefined;
    if (user !== undefined) {
        chownSync(folder, user.uid, user.gid);
    }

    const initArgs = ['-D', data, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync', ...init];
    const made = spawnSync(join(programs, 'initdb'), initArgs, { cwd: folder, ...user, encoding: 'utf8' });
    if (made.status !== 0) {
        throw new Error(`initdb failed: ${made.error?.message ?? made.stderr}`);
    }

    const port = await freePort();
    const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
    const all = [...settings, 'max_connections=300', 'unix_socket_directories='];
    const args = ['-D', data, '-h', '127.0.0.1', '-p', String(port), ...all.flatMap((setting) => ['-c', setting])];
    const options = { program: join(programs, 'postgres'), args, cwd: folder, stopSignal: 'SIGINT', answers: () => connects(url) } as const;
    const launch = (): Promise<ServerProcess> => startServer(user === undefined ? options : { ...options, user });
    let server = await launch();

    return {
        url,
        stop: (signal) => server.stop(signal),
        async start() {
            server = await launch();
        },
        limitFiles: (bytes) => limitFiles(server.id, bytes, user),
    };
}

async function connects(url: string): Promise<boolean> {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1_000 });
    client.on('error', () => {});
    try {
        await client.connect();
        return true;
    } finally {
        await client.end();
    }
}

/** PostgreSQL refuses to run as root. */
function unprivilegedUser(): { uid: number; gid: number } {
    const users = readFileSync('/etc/passwd', 'utf8')
        .split('\n')
        .map((line) => line.split(':'));
    const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody');
    if (user === undefined) {
        throw new Error('PostgreSQL does not run as root, and there is neither a user postgres nor nobody: set DATABASE_URL');
    }

    return { uid: Number(user[2]), gid: Number(user[3]) };
}
