import type { Executor } from '../../lib/executor.ts';
import type { PoolLike } from './pool.ts';
import { guarded } from './unavailable.ts';

/**
 * Runs statements in one transaction: committed when `run` resolves, rolled back when it rejects. A connection that does not even
 * take the rollback is dropped.
 *
 * @throws What `run` throws; ScanwireError `UNAVAILABLE` when the database cannot be used.
 */
export async function transaction<T>(pool: PoolLike, run: (client: Executor) => Promise<T>): Promise<T> {
    const client = await guarded(pool).connect();
    let broken = false;
    const noteBroken = (): void => {
        broken = true;
    };

    // A client that is checked out emits the loss of its connection, and an unheard error would end the process.
    client.on('error', noteBroken);
    try {
        // A statement that waited for a lock must see what the one before committed, whatever the host's database starts with.
        await client.query('begin isolation level read committed');
        const result = await run(client);
        await client.query('commit');
        return result;
    } catch (error) {
        await client.query('rollback').catch(noteBroken);
        throw error;
    } finally {
        client.removeListener('error', noteBroken);
        client.release(broken);
    }
}
