import t from 'tap';
import { type PoolLike, postgresInventory } from '../../adapters/postgres/index.ts';
import { addressRange } from '../../lib/address-range.ts';
import type { Selection } from '../../lib/inventory/selection.ts';
import { explainedDatabase } from './executed-plans.ts';

const HOSTS = 20_000;
const DAYS = 30;
/** The most that a page may read: of each of its rows one of the table, and what leads there. */
const MAX_PAGES = 500;

/** In the order of their addresses, and each changed after the one before. */
const FILL = `
insert into scanwire.hosts (workspace_id, address, updated_at)
select $1::integer, '10.0.0.0'::inet + g.i, now() - interval '1 day' * ${DAYS} * (1 - g.i / ${HOSTS}.0)
from generate_series(1, ${HOSTS}) g (i)`;

t.test('a page of many hosts reads little more than its rows, wherever it begins', async (t) => {
    const { pool, connection } = await explainedDatabase(t);
    const { id } = await postgresInventory({ pool }).ensureWorkspace('many');
    await pool.query(FILL, [id]);
    await pool.query('vacuum analyze');

    const daysAgo = (days: number): Date => new Date(Date.now() - days * 86_400_000);
    const selections: Readonly<Record<string, Selection>> = {
        'the first': {},
        'in the middle': { after: { id: HOSTS / 2 } },
        'of a /24': { where: { address: addressRange('10.0.40.0/24') } },
        'of a /16': { where: { address: addressRange('10.0.0.0/16') }, after: { id: HOSTS / 2 } },
        'of a /8': { where: { address: addressRange('10.0.0.0/8') }, after: { id: HOSTS / 2 } },
        'changed for long': { where: { updated_since: daysAgo(DAYS - 1) } },
        'changed for half of the time': { where: { updated_since: daysAgo(DAYS / 2) } },
        'changed of late': { where: { updated_since: daysAgo(1) } },
        'changed behind one of them': {
            where: { updated_since: daysAgo(DAYS - 1) },
            after: { id: HOSTS / 2, updated_at: daysAgo(DAYS / 2) },
        },
    };
    const { hosts } = postgresInventory({ pool: connection.pool });
    for (const [name, selection] of Object.entries(selections)) {
        const read = async (): Promise<number> => {
            let rows = 0;
            for await (const batch of hosts.select?.([id], { ...selection, limit: 101 }) ?? []) {
                rows += batch.length;
            }
            return rows;
        };
        // A connection learns what it needs of the catalogue.
        t.equal(await read(), 101, name);
        const { pages } = await connection.executed(read);
        t.ok(pages <= MAX_PAGES, `${name}: ${pages} pages`);
    }
});

const FILL_SERVICES = `
insert into scanwire.services (host_id, port, proto, state)
select id, port, 'tcp', 'open' from scanwire.hosts, unnest(array[22, 25, 80, 443, 8443]) port where workspace_id = $1 order by id, port`;

t.test('a page of the services of some addresses reads little more than these hosts have', async (t) => {
    const { pool, connection } = await explainedDatabase(t);
    const { id } = await postgresInventory({ pool }).ensureWorkspace('many');
    await pool.query(FILL, [id]);
    await pool.query(FILL_SERVICES, [id]);
    await pool.query('vacuum analyze');

    const { workspaceServices } = postgresInventory({ pool: connection.pool });
    for (const [name, address, after, maxPages] of [
        ['of an address', '10.0.40.9', 0, MAX_PAGES],
        // Each of 256 hosts is looked up, and sorted with all of its services.
        ['of a /24', '10.0.40.0/24', 0, 2 * 256 * 4],
        ['of a /24, the last', '10.0.78.0/24', 0, 2 * 256 * 4],
        // Of more than 4,096 hosts so many are counted first.
        ['of a /8', '10.0.0.0/8', (HOSTS * 5) / 2, 4_097 + 2 * MAX_PAGES],
    ] as const) {
        const read = async (): Promise<number> => {
            let rows = 0;
            const selection = { where: { address: addressRange(address) }, after: { id: after }, limit: 101 };
            for await (const batch of workspaceServices.select?.([id], selection) ?? []) {
                rows += batch.length;
            }
            return rows;
        };
        t.equal(await read(), address.includes('/') ? 101 : 5, name);
        const { pages } = await connection.executed(read);
        t.ok(pages <= maxPages, `${name}: ${pages} pages`);
    }
});

t.test('a count by ranges reads each row once, of a table of which the planner knows nothing too', async (t) => {
    const { pool, connection } = await explainedDatabase(t);
    const { id } = await postgresInventory({ pool }).ensureWorkspace('many');
    await pool.query(FILL, [id]);
    const { query, connect } = connection.pool;
    const embedded = { embedded: true, query: query.bind(connection.pool), connect: connect.bind(connection.pool) } as unknown as PoolLike;
    const { hosts } = postgresInventory({ pool: embedded });
    for (const address of [undefined, addressRange('10.0.0.0/8')]) {
        const executed = await connection.each(async () => t.equal(await hosts.count?.([id], { ...(address && { address }) }), HOSTS));
        const rows = executed.flatMap(({ scans }) => scans).reduce((sum, scan) => sum + scan.rows, 0);
        t.ok(rows < 1.1 * HOSTS, `${rows} rows in ${executed.length} statements`);
    }
});
