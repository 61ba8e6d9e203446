import t from 'tap';
import { apiKeyStoreContract, inventoryContract, recordStoreContract, webhookStoresContract } from '../../../adapters/contract/index.ts';
import type { ContractTest } from '../../../adapters/contract/register-laws.ts';
import { type PoolLike, postgresApiKeys, postgresInventory, postgresRecords } from '../../../adapters/postgres/index.ts';
import { tapTest } from '../contract/tap-test.ts';
import { databaseNamed, startAfresh } from './databases.ts';
import { emptyWebhookStores } from './webhooks/empty-webhook-stores.ts';

/** Which of the laws. */
interface Part {
    /** From 0. */
    readonly part: number;
    readonly parts: number;
}

const WHOLE: Part = { part: 0, parts: 1 };

/** Every so-many-th law alone. */
function partOf(test: ContractTest, { part, parts }: Part): ContractTest {
    let laws = 0;
    return (law, run) => {
        laws += 1;
        return laws % parts === part ? test(law, run) : undefined;
    };
}

/** The laws of inventories, keys and records on one kind of database. A file for each, and several where one takes longer than a file may. */
export function keepsLaws(name: string, part: Part = WHOLE): void {
    t.test(`keeps the laws on ${name}, part ${part.part + 1} of ${part.parts}`, async (t) => {
        const { pool, stop } = await databaseNamed(name).openMigrated();
        t.after(stop);
        const start = () => startAfresh(pool);
        const test = partOf(tapTest(t), part);

        inventoryContract(test, () => ({
            store: postgresInventory({ pool }),
            add: adding(pool),
            openReads: () => checkedOut(pool),
            start,
        }));
        apiKeyStoreContract(test, () => ({ store: postgresApiKeys({ pool }), start, ...stoppableClock(pool) }));
        recordStoreContract(test, () => {
            let now = new Date();
            const options = { pool, clock: () => now };
            return {
                store: postgresRecords(options),
                inventory: postgresInventory(options),
                setTime(time) {
                    now = time;
                },
                start,
            };
        });
    });
}

/** The laws of webhook stores on one kind of database, in files of their own for the same reason. */
export function keepsWebhookLaws(name: string, part: Part = WHOLE): void {
    t.test(`keeps the laws of webhook stores on ${name}, part ${part.part + 1} of ${part.parts}`, async (t) => {
        const { pool, stop } = await databaseNamed(name).openMigrated();
        t.after(stop);
        webhookStoresContract(partOf(tapTest(t), part), () => emptyWebhookStores(pool));
    });
}

/** A time of the schema that stands still once it is set, until the law is over. */
function stoppableClock(pool: PoolLike): { readonly setTime: (time: Date) => Promise<void>; readonly stop: () => Promise<void> } {
    let going: string | undefined;
    return {
        async setTime(time) {
            const { rows } = await pool.query<{ going: string }>(`select pg_get_functiondef('scanwire.now()'::regprocedure) as going`);
            going ??= rows[0]?.going;
            const standing = `select timestamptz '${time.toISOString()}'`;
            await pool.query(`create or replace function scanwire.now() returns timestamptz language sql volatile as $$ ${standing} $$`);
        },
        async stop() {
            if (going !== undefined) {
                await pool.query(going);
            }
        },
    };
}

/** Clients of a node-postgres pool that somebody holds; the embedded database has none to count. */
function checkedOut(pool: PoolLike): number {
    const { totalCount = 0, idleCount = 0 } = pool as Partial<Record<'totalCount' | 'idleCount', number>>;
    return totalCount - idleCount;
}

function adding(pool: PoolLike) {
    const insert = async (sql: string, parent: number): Promise<number> =>
        (await pool.query<{ id: number }>(`${sql} returning id`, [parent])).rows[0]?.id ?? 0;
    return {
        note: (hostId: number) =>
            insert(
                `insert into scanwire.notes (workspace_id, host_id, data) select workspace_id, id, '{}' from scanwire.hosts where id = $1`,
                hostId,
            ),
        session: (hostId: number) =>
            insert(
                `insert into scanwire.sessions (host_id, datastore, opened_at) select id, '{}', now() from scanwire.hosts where id = $1`,
                hostId,
            ),
        boundary: (workspaceId: number, boundary: string) =>
            pool.query('update scanwire.workspaces set boundary = $2, limit_to_network = true where id = $1', [workspaceId, boundary]),
        vuln: (serviceId: number) =>
            insert(
                `insert into scanwire.vulns (host_id, service_id, name) select host_id, id, 'x' from scanwire.services where id = $1`,
                serviceId,
            ),
    };
}
