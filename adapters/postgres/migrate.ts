import { createHash } from 'node:crypto';
import type { Executor } from '../../lib/executor.ts';
import { ScanwireError } from '../../lib/scanwire-error.ts';
import { migrations } from './migrations/index.ts';
import type { Migration } from './migrations/migration.ts';
import type { PoolLike } from './pool.ts';
import { transaction } from './transaction.ts';

/** Key of the advisory lock that lets one migration run at a time: the bytes of `scan`, `wire`. */
const LOCK = [0x7363616e, 0x77697265];

export interface MigrateOptions {
    /** The steps to bring the schema to; all that this version has by default. */
    readonly steps?: readonly Migration[];
}

/**
 * Brings the schema `scanwire` up to this version: every step once, all in one transaction, under a lock, so that any number
 * of processes may start together.
 *
 * @returns Ids of the steps that were run now.
 * @throws ScanwireError `MISCONFIGURED` when the schema is newer than this version, or was made by other steps than these.
 * @throws ScanwireError `UNAVAILABLE` when the database cannot be used.
 */
export async function migrate(pool: PoolLike, { steps = migrations }: MigrateOptions = {}): Promise<readonly string[]> {
    return await transaction(pool, async (client) => {
        await client.query('select pg_catalog.pg_advisory_xact_lock($1, $2)', LOCK);
        await ensureLedger(client);

        const done = await readLedger(client);
        assertFits(done, steps);
        const pending = steps.filter(({ id }) => !done.has(id));
        for (const { id, sql } of pending) {
            await client.query(sql);
            await client.query('insert into scanwire.migration (id, checksum) values ($1, $2)', [id, checksum(sql)]);
        }

        return pending.map(({ id }) => id);
    });
}

/** The schema may have been made for us by somebody with more rights, so it is made only where it is missing. */
async function ensureLedger(client: Executor): Promise<void> {
    const { rows } = await client.query<{ found: boolean }>(`select pg_catalog.to_regnamespace('scanwire') is not null as found`);
    if (rows[0]?.found !== true) {
        await client.query('create schema scanwire');
    }

    await client.query(`create table if not exists scanwire.migration (
        id text primary key,
        checksum text not null,
        applied_at timestamptz(3) not null default now()
    )`);
}

async function readLedger(client: Executor): Promise<ReadonlyMap<string, string>> {
    const { rows } = await client.query<{ id: string; checksum: string }>('select id, checksum from scanwire.migration');
    return new Map(rows.map(({ id, checksum }) => [id, checksum]));
}

function assertFits(done: ReadonlyMap<string, string>, steps: readonly Migration[]): void {
    const known = new Map(steps.map(({ id, sql }) => [id, checksum(sql)]));
    for (const [id, sum] of done) {
        if (!known.has(id)) {
            throw new ScanwireError('MISCONFIGURED', `The database is newer than this version of scanwire: it knows the migration ${id}`);
        }

        if (known.get(id) !== sum) {
            throw new ScanwireError('MISCONFIGURED', `The migration ${id} of the database is not the one of this version of scanwire`);
        }
    }
}

function checksum(sql: string): string {
    return createHash('sha256').update(sql).digest('hex');
}
