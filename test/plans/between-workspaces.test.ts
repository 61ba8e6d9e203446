import type pg from 'pg';
import t, { type Test } from 'tap';
import { type PoolLike, postgresInventory } from '../../adapters/postgres/index.ts';
import type { Collection } from '../../lib/inventory/store.ts';
import { type ExplainedConnection, explainedDatabase } from './executed-plans.ts';

type Row = { readonly id: number };
type Listed = 'workspaceServices' | 'workspaceNotes' | 'workspaceVulns' | 'workspaceSessions';

/** What is read of each, and how many rows it has. */
interface Reading {
    readonly what: string;
    readonly rows: number;
    /** Rows of tables and indexes that are read at most: a window of 10,000 ids for each batch, and one more at the end. */
    readonly most: number;
    readonly read: (of: Collection<Row>) => AsyncIterable<string | Uint8Array | readonly Row[]> | undefined;
}

const LISTED = ['workspaceServices', 'workspaceNotes', 'workspaceVulns', 'workspaceSessions'] as const;
/** Hosts of the workspace that is read, and how many more the other one gets in turn. */
const HOSTS = 200;
const OTHERS = 4_000;
/** What each of them has of everything. */
const EACH = 4;
/** Rows of tables and indexes for a page of 101. */
const FEW = 500;

const FILL = `
with host as (
    insert into scanwire.hosts (workspace_id, address) select $1::integer, '10.0.0.0'::inet + $2::integer + n from generate_series(1, $3::integer) n returning id
), service as (
    insert into scanwire.services (host_id, port, proto, state)
    select id, port, 'tcp', 'open' from host, generate_series(1, ${EACH}) port order by id, port returning id, host_id
), note as (
    insert into scanwire.notes (workspace_id, host_id, ntype) select $1::integer, host_id, 'note' from service order by id
), vuln as (
    insert into scanwire.vulns (host_id, service_id, name) select host_id, id, 'vuln' from service order by id
)
insert into scanwire.sessions (host_id, opened_at) select host_id, timestamptz '2026-01-01' from service order by id`;

t.test('the end of what is below all hosts of a workspace is found whatever other workspaces have', async (t) => {
    const { pool, connection } = await explainedDatabase(t);
    const { ensureWorkspace } = postgresInventory({ pool });
    const [{ id: before }, { id }, { id: behind }] = [
        await ensureWorkspace('before'),
        await ensureWorkspace('read'),
        await ensureWorkspace('behind'),
    ];
    await pool.query(FILL, [before, 0, OTHERS]);
    await pool.query(FILL, [id, 0, HOSTS]);
    const { rows } = await pool.query<Row>('select max(id) as id from scanwire.services');
    const last = rows[0]?.id ?? 0;
    const readings: readonly Reading[] = [
        { what: 'the last page', rows: 50, most: 25_000, read: (of) => of.select?.([id], { after: { id: last - 50 }, limit: 101 }) },
        { what: 'all', rows: EACH * HOSTS, most: 60_000, read: (of) => of.list([id]) },
        { what: 'all as text', rows: EACH * HOSTS, most: 60_000, read: (of) => of.listText?.([id]) },
    ];
    for (const others of [0, OTHERS]) {
        await pool.query(FILL, [behind, others, OTHERS]);
        await pool.query('vacuum analyze');
        await assertRead(t, connection, readings);
    }
    const services: Collection<Row> = postgresInventory({ pool: connection.pool }).workspaceServices;
    for (const after of [0, OTHERS]) {
        const page = services.select?.([before], { after: { id: after }, limit: 101 });
        const executed = await connection.each(async () => t.equal(page && (await length(page)), 101));
        const rows = rowsRead(executed);
        t.ok(executed.length === 1 && rows < FEW, `${rows} rows for a page that is not the last, in ${executed.length} statements`);
    }
});

/** That none reads more than it may, however large the others are. */
async function assertRead(t: Test, connection: ExplainedConnection, readings: readonly Reading[]): Promise<void> {
    for (const [where, pool] of Object.entries({ 'on a server': connection.pool, embedded: embedded(connection.pool) })) {
        const inventory: Readonly<Record<Listed, Collection<Row>>> = postgresInventory({ pool });
        for (const name of LISTED) {
            for (const { what, rows, most, read: reading } of readings) {
                const batches = reading(inventory[name]);
                if (batches !== undefined) {
                    const label = `${what} of ${name}, ${where}`;
                    const executed = await connection.each(async () => t.equal(await length(batches), rows, label));
                    const read = rowsRead(executed);
                    t.ok(read <= most, `${label}: ${read} rows`);
                }
            }
        }
    }
}

function rowsRead(executed: Awaited<ReturnType<ExplainedConnection['each']>>): number {
    return executed.flatMap(({ scans }) => scans).reduce((sum, scan) => sum + scan.rows, 0);
}

async function length(batches: AsyncIterable<string | Uint8Array | readonly Row[]>): Promise<number> {
    let text = '';
    let rows = 0;
    for await (const batch of batches) {
        if (typeof batch === 'string' || batch instanceof Uint8Array) {
            text += `${text === '' ? '' : ','}${Buffer.from(batch)}`;
        } else {
            rows += batch.length;
        }
    }
    return rows + (JSON.parse(`[${text}]`) as unknown[]).length;
}

/** As one where everybody waits for each statement. */
function embedded(pool: pg.Pool): PoolLike {
    return { embedded: true, query: pool.query.bind(pool), connect: pool.connect.bind(pool) } as unknown as PoolLike;
}
