import type pg from 'pg';
import { until } from '../../../../adapters/contract/assertions.ts';

/**
 * Runs what is to be done in a transaction, then what others do meanwhile, and commits once these wait for it or are done.
 *
 * @returns What the others have come to.
 */
export async function meanwhile<T>(
    pool: pg.Pool,
    first: (client: pg.PoolClient) => Promise<unknown>,
    others: () => Promise<T>,
    isolation = 'read committed',
): Promise<T> {
    const client = await pool.connect();
    try {
        await client.query(`begin isolation level ${isolation}`);
        await first(client);
        let done = false;
        const result = others().finally(() => {
            done = true;
        });
        // A rejection is for the caller, who gets it below: until then it must not count as unhandled.
        result.catch(() => {});
        await until(async () => done || (await someoneWaits(pool)));
        await client.query('commit');
        return await result;
    } finally {
        client.release();
    }
}

async function someoneWaits(pool: pg.Pool): Promise<boolean> {
    const { rows } = await pool.query(
        'select from pg_locks l join pg_stat_activity a using (pid) where a.datname = current_database() and not l.granted',
    );
    return rows.length > 0;
}
