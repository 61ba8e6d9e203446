import { readdir, readFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import pg from 'pg';

/** Process ids by what they are; each stands for the processes that it has started too. */
export type Processes = Readonly<Record<string, number>>;

/** CPU time so far, in microseconds, by what the processes are. Linux counts it in steps of 10,000. */
export async function cpuTimes(processes: Processes): Promise<Readonly<Record<string, number>>> {
    const stats = await Promise.all((await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(statOf));
    const times = Object.entries(processes).map(([name, root]) => {
        const own = stats.filter((stat) => stat !== null && (stat.pid === root || stat.parent === root));
        return [name, own.reduce((sum, stat) => sum + (stat?.microseconds ?? 0), 0)] as const;
    });
    return Object.fromEntries(times);
}

/** What a task results in, and the CPU time that the processes spend on it, in microseconds for each of so many. */
export async function withCpu<Result>(
    processes: Processes,
    count: number,
    task: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly cpu: Readonly<Record<string, number>> }> {
    const before = await cpuTimes(processes);
    const result = await task();
    const after = await cpuTimes(processes);
    return {
        result,
        cpu: Object.fromEntries(Object.entries(after).map(([name, time]) => [name, (time - (before[name] as number)) / count])),
    };
}

/** How many seconds a task takes. */
export async function timed(task: () => Promise<unknown>): Promise<number> {
    const started = performance.now();
    await task();
    return (performance.now() - started) / 1000;
}

interface Stat {
    readonly pid: number;
    readonly name: string;
    readonly parent: number;
    /** Of its threads, and of the children that have ended. */
    readonly microseconds: number;
}

const TICK = 10_000;

/** Null for a process that is not there. */
async function statOf(pid: string): Promise<Stat | null> {
    const text = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => null);
    const [, name = '', rest = ''] = /^\d+ \((.*)\) (.*)/s.exec(text ?? '') ?? [];
    const fields = rest.split(' ').map(Number);
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + field, 0);
    return text === null ? null : { pid: Number(pid), name, parent: fields[1] as number, microseconds: ticks * TICK };
}

/** Of servers; none where nothing is kept there. */
export interface ServerUrls {
    readonly DATABASE_URL?: string | undefined;
    readonly REDIS_URL?: string | undefined;
}

/** The processes of the servers, those that run on this machine. */
export async function serverProcesses({ DATABASE_URL, REDIS_URL }: ServerUrls): Promise<Processes> {
    const [postgres, redis] = await Promise.all([
        DATABASE_URL === undefined ? null : postgresProcess(DATABASE_URL),
        REDIS_URL === undefined ? null : redisProcess(REDIS_URL),
    ]);
    return { ...(postgres !== null && { postgres }), ...(redis !== null && { redis }) };
}

async function postgresProcess(url: string): Promise<number | null> {
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    const backend = await statOf(String(rows[0]?.pid));
    await client.end();
    return backend?.name === 'postgres' ? backend.parent : null;
}

async function redisProcess(url: string): Promise<number | null> {
    const client = new Redis(url);
    const info = await client.info('server');
    client.disconnect();
    const server = await statOf(/^process_id:(\d+)/m.exec(info)?.[1] ?? '');
    return server?.name.startsWith('redis') ? server.pid : null;
}
