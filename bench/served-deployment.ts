import assert from 'node:assert';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { until } from '../adapters/contract/assertions.ts';
import { type RedisServer, redisServer } from '../test/support/redis-server.ts';
import { testDatabase } from '../test/support/test-database.ts';
import { notingReceiver, type Receiver } from './arrivals.ts';
import type { Checkout } from './checkout.ts';
import { firstLine } from './processes.ts';
import { ADD } from './sender-store.ts';

/** The command `scanwire` on a Redis of its own and an empty database, with one exporter that runs. */
export interface ServedDeployment {
    readonly redis: RedisServer;
    readonly rows: pg.Pool;
    readonly receiver: Receiver;
    /** Starts `serve`, or another command, and resolves with its process once it says that it is ready. */
    start(...command: readonly string[]): Promise<Started>;
    /** Adds events of about so many bytes, each with a delivery to the exporter. */
    add(events: number, bodyBytes?: number): Promise<void>;
    /** Resolves once so many different events have come in all, or no other for a minute: with how many are missing. */
    missing(count: number): Promise<number>;
    /** Resolves once so many have come in all, and nothing is left to send. @throws Error when some are missing. */
    finished(count: number): Promise<void>;
}

const run = promisify(execFile);

/** A process, with what it has said when it was ready: a line of JSON. */
export type Started = ChildProcess & { readonly firstLine: string };

/** The command of a checkout on a data folder. */
export interface Command {
    /** Starts `serve`, or another command, and resolves with its process once it says that it is ready. */
    start(...command: readonly string[]): Promise<Started>;
    /** Runs a command to its end, and resolves with what it prints. */
    run(...command: readonly string[]): Promise<string>;
    /** Kills what was started. */
    end(): Promise<void>;
}

/** @param env All that the command finds in its environment, beside the path. */
export function commandOn({ program }: Checkout, data: string, env: Readonly<Record<string, string>>): Command {
    const started: ChildProcess[] = [];
    const options = { env: { PATH: process.env.PATH, SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8', ...env } };
    return {
        async start(...command) {
            const child = spawn(process.execPath, [program, ...command, '--data', data, '--json'], {
                ...options,
                stdio: ['ignore', 'pipe', 'inherit'],
            });
            started.push(child);
            return Object.assign(child, { firstLine: await firstLine(child) });
        },

        async run(...command) {
            const { stdout } = await run(process.execPath, [program, ...command, '--data', data], options);
            return stdout;
        },

        async end() {
            await Promise.all(started.map((child) => ended(child, 'SIGKILL')));
        },
    };
}

/** Starts `serve`, and removes everything after the task. */
export async function withServed<Result>(
    checkout: Checkout,
    task: (deployment: ServedDeployment, served: ChildProcess) => Promise<Result>,
): Promise<Result> {
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
    const [data, redisFolder] = [join(folder, 'data'), join(folder, 'redis')];
    await mkdir(redisFolder);
    const redis = await redisServer(redisFolder);
    const database = await testDatabase();
    const rows = new pg.Pool({ connectionString: database.url, max: 2 });
    const receiver = await notingReceiver();
    const command = commandOn(checkout, data, { DATABASE_URL: database.url, REDIS_URL: redis.url });
    const deployment: ServedDeployment = {
        redis,
        rows,
        receiver,
        start: command.start,

        async add(events, bodyBytes = 1_000) {
            await rows.query(ADD, [events, bodyBytes]);
        },

        missing: (count) => missing(receiver, count),

        async finished(count) {
            const left = await missing(receiver, count);
            assert.strictEqual(left, 0, `${left} of ${count} never came`);
            await until(async () => (await rows.query(ACTIVE)).rowCount === 0);
        },
    };
    try {
        const served = await command.start(...SERVE);
        await command.run('exporters', 'create', '--url', receiver.url, '--start');
        return await task(deployment, served);
    } finally {
        await command.end();
        await rows.end();
        await database.drop();
        await redis.kill();
        await receiver.refuse();
        await rm(folder, { recursive: true });
    }
}

const ACTIVE = `select from scanwire.deliveries where stage in ('waiting', 'in flight') limit 1`;
const PATIENCE = 60_000;

async function missing({ first }: Receiver, count: number): Promise<number> {
    let [seen, since] = [first.size, performance.now()];
    await until(() => {
        if (first.size > seen) {
            [seen, since] = [first.size, performance.now()];
        }
        return seen >= count || performance.now() - since > PATIENCE;
    }, Number.POSITIVE_INFINITY);
    return Math.max(0, count - seen);
}

/** The command, on a free port. */
export const SERVE = ['serve', '--port', '0'] as const;

/** Signals it, unless it has ended, and resolves once it has. */
export async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, 'exit');
        child.kill(signal);
        await exited;
    }
}
