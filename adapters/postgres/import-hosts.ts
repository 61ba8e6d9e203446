import { randomUUID } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { ScanwireError } from '../../lib/errors.ts';
import type { Executor } from '../../lib/executor.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import type { ImportSummary } from '../../lib/inventory/store.ts';
import { type PoolLike, patiently, sqlState, transaction } from './database.ts';
import { applyStaged, discardStaged, type Lease, lease, show, stageBatch } from './staged-import.ts';
import { ensureWorkspace, inTurn } from './workspaces.ts';

/** So many make a short transaction also on the embedded database, where everybody waits for it. */
const HOSTS_PER_BATCH = 150;
const SERVICES_PER_BATCH = 500;

/**
 * Reads all hosts into a side table first, so that a slow source keeps no other import waiting. Then they are stored batch by batch, each
 * in a short transaction that lets others work, where nobody sees them; and shown at once.
 *
 * @throws ScanwireError `INVALID_INPUT` when the database refuses a value; whatever the iteration throws.
 */
export async function importHosts(
    pool: PoolLike,
    workspaceName: string,
    hosts: AsyncIterable<HostInput>,
    clock: Clock,
): Promise<ImportSummary> {
    const database = patiently(pool);
    const importId = randomUUID();
    try {
        const batches = await readAside(database, importId, hosts);
        const summary = await takeOver(pool, importId, workspaceName, batches, clock);
        if (batches > 1) {
            await learnSizes(pool);
        }

        return summary;
    } catch (error) {
        throw isRefusedValue(error)
            ? new ScanwireError('INVALID_INPUT', 'A host holds a value that cannot be stored', { cause: error })
            : error;
    } finally {
        await removeAside(database, importId);
    }
}

async function takeOver(pool: PoolLike, importId: string, name: string, batches: number, clock: Clock): Promise<ImportSummary> {
    const { generation, ...held } = await inTurn(pool, name, clock(), async (client, workspaceId) => {
        const own = { workspaceId, importId };
        return { ...own, generation: await lease(client, own) };
    });
    const at = clock();
    const counts = await stageAll(pool, held, batches, { generation, at });
    await show(pool, held, generation);
    const workspace = await ensureWorkspace(patiently(pool), name, at);
    await applyStaged(pool, held);
    return { workspace, ...counts };
}

async function stageAll(
    pool: PoolLike,
    held: Lease,
    batches: number,
    { generation, at }: { readonly generation: number; readonly at: Date },
): Promise<Omit<ImportSummary, 'workspace'>> {
    const hosts = { created: 0, updated: 0 };
    const services = { created: 0, updated: 0 };
    try {
        for (let seq = 0; seq < batches; seq++) {
            const stored = await stageBatch(pool, held, { seq, generation, at });
            hosts.created += stored.hosts.created;
            hosts.updated += stored.hosts.updated;
            services.created += stored.services.created;
            services.updated += stored.services.updated;
        }
    } catch (error) {
        // What cannot be removed now, the next import removes.
        await discardStaged(pool, held).catch(() => {});
        throw error;
    }

    return { hosts, services };
}

async function readAside(pool: Executor, importId: string, hosts: AsyncIterable<HostInput>): Promise<number> {
    let seq = 0;
    for await (const batch of inBatches(hosts)) {
        const sql = 'insert into scanwire.import_batches (import_id, seq, hosts) values ($1, $2, $3)';
        await pool.query(sql, [importId, seq, JSON.stringify(batch)]);
        seq += 1;
    }

    return seq;
}

/** No address is twice in a batch, since one statement stores each host once. */
async function* inBatches(hosts: AsyncIterable<HostInput>): AsyncGenerator<readonly HostInput[]> {
    let batch = new Map<string, HostInput>();
    let services = 0;
    for await (const host of hosts) {
        if (batch.size >= HOSTS_PER_BATCH || services >= SERVICES_PER_BATCH || batch.has(host.address)) {
            yield [...batch.values()];
            batch = new Map();
            services = 0;
        }

        batch.set(host.address, host);
        services += host.services?.length ?? 0;
    }

    if (batch.size > 0) {
        yield [...batch.values()];
    }
}

/**
 * After many new rows listings would sort them all for every batch until the planner has heard of them (measured: 3 times slower). A tenth
 * of the usual sample tells it enough, and takes a tenth of the time.
 */
async function learnSizes(pool: PoolLike): Promise<void> {
    for (const table of ['hosts', 'services']) {
        await transaction(pool, async (client) => {
            await client.query('set local default_statistics_target = 10');
            await client.query(`analyze scanwire.${table}`);
        }).catch(() => {});
    }
}

/** Batches of imports that were cut off (older than a day) go with them, a few at a time. The outcome of the import does not depend on this. */
async function removeAside(pool: Executor, importId: string): Promise<void> {
    const sql = `delete from scanwire.import_batches where (import_id, seq) in (
        select import_id, seq from scanwire.import_batches where import_id = $1 or created_at < now() - interval '1 day' limit 50
    )`;
    try {
        while (((await pool.query(sql, [importId])).rowCount ?? 0) > 0);
    } catch {
        // The next import tries again.
    }
}

/** A value of a form (class 22) or beyond a bound (23514) that no column takes, for example text with a NUL character. */
function isRefusedValue(error: unknown): boolean {
    return /^(?:22...|23514)$/.test(sqlState(error));
}
