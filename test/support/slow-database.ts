import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Test } from 'tap';
import { migratedDatabase } from './migrated-database.ts';

/** A real PostgreSQL that can be made to wait. */
export interface SlowDatabase {
    readonly url: string;
    readonly pool: pg.Pool;
    /** Keeps all waiting who read one of these tables. */
    lock(tables?: string): Promise<void>;
    unlock(): Promise<void>;
    /** The processes with a statement that runs, or waits for a lock. */
    running(): Promise<readonly number[]>;
    /** Those whose statement waits for a lock: without those whose statement before it has not quite ended. */
    blocked(): Promise<readonly number[]>;
}

/** A pool as an application may have it, what its connections do on the server, and a connection that keeps all of them waiting. */
export async function slow(t: Test, options: pg.PoolConfig = {}): Promise<SlowDatabase> {
    const database = await migratedDatabase();
    const pool = new pg.Pool({ connectionString: database.url, application_name: 'leaving', ...options });
    const [beside, observer] = [new pg.Client({ connectionString: database.url }), new pg.Client({ connectionString: database.url })];
    await Promise.all([beside.connect(), observer.connect()]);
    // A server process may end after its connection, and after the drop.
    pool.on('error', () => {});
    t.teardown(async () => {
        await Promise.all([beside.end(), observer.end()]);
        await pool.end();
        await database.drop();
    });
    const pids = async (where: string): Promise<readonly number[]> => {
        const sql = `select pid from pg_stat_activity where application_name = 'leaving' and ${where} order by pid`;
        return (await observer.query<{ pid: number }>(sql)).rows.map(({ pid }) => pid);
    };
    return {
        url: database.url,
        pool,
        lock: async (tables = 'scanwire.hosts, scanwire.workspaces') => {
            await beside.query(`begin; lock table ${tables} in access exclusive mode`);
        },
        unlock: async () => {
            await beside.query('rollback');
        },
        running: () => pids("state = 'active'"),
        blocked: () => pids("wait_event_type = 'Lock'"),
    };
}

/** Milliseconds until the pool has a connection back, beyond the 90 that this machine takes, busy as it is, to wait for 50 and for 40. */
export async function beyond90(pool: pg.Pool): Promise<number> {
    const released = once(pool, 'release').then(() => performance.now());
    const waited = sleep(50)
        .then(() => sleep(40))
        .then(() => performance.now());
    return (await released) - (await waited);
}
