import t, { type Test } from 'tap';
import { present } from '../../../../adapters/contract/assertions.ts';
import { postgresInventory } from '../../../../adapters/postgres/index.ts';
import { migratedPool } from '../../../support/migrated-database.ts';

const OLD = new Date('2026-01-01T00:00:00Z');
const NEW = new Date('2026-11-01T00:00:00Z');
const HOSTS = 12_000;
/** Far apart, the first and the last of all, and more than a slice takes in one place. */
const OLD_ONES = `n in (1, 2, 6000, ${HOSTS}) or n between 3001 and 3400`;
const REMOVED = 404;

/** A workspace with many hosts, few of which have not been seen for long. */
async function workspace(t: Test) {
    const pool = await migratedPool(t, {});
    const statements: string[] = [];
    pool.on('connect', (client) => {
        const query = client.query.bind(client) as (...given: unknown[]) => unknown;
        Object.assign(client, {
            query: (...given: [string | { text: string }]) => {
                statements.push(typeof given[0] === 'string' ? given[0] : given[0].text);
                return query(...given);
            },
        });
    });
    await pool.query(
        `insert into scanwire.hosts (workspace_id, address, state, created_at, updated_at)
        select 1, '10.0.0.0'::inet + n, 'alive', $1, case when ${OLD_ONES} then $1::timestamptz else $2 end from generate_series(1, ${HOSTS}) n`,
        [OLD, NEW],
    );
    const count = async (): Promise<number> => (await pool.query('select count(*)::integer as count from scanwire.hosts')).rows[0].count;
    const looks = (): number => statements.filter((text) => text.includes('looked as')).length;
    return { inventory: postgresInventory({ pool }), pool, statements, count, looks };
}

const long = { notSeenSince: new Date('2026-06-01T00:00:00Z') };

t.test('few of many are found wherever they are, and none is looked for twice', async (t) => {
    const { inventory, count, looks } = await workspace(t);
    t.same(await inventory.expireHosts('default', { ...long, dryRun: true }), { hosts: REMOVED });
    t.ok(looks() > 2, 'piece by piece');
    t.equal(await count(), HOSTS);
    t.same(await inventory.expireHosts('default', long), { hosts: REMOVED });
    t.equal(await count(), HOSTS - REMOVED);
    const before = looks();
    t.same(await inventory.expireHosts('default', long), { hosts: 0 });
    t.ok(looks() - before < 20, `no slice of its own for every hundred that stay: ${looks() - before}`);
});

t.test('so are those of a range, and all', async (t) => {
    const { inventory, count } = await workspace(t);
    const address = { first: '10.0.11.0', last: '10.0.11.255' };
    t.same(await inventory.removeHosts('default', { address, dryRun: true }), { hosts: 256 });
    t.same(await inventory.removeHosts('default', { address }), { hosts: 256 });
    t.equal(await count(), HOSTS - 256);
    t.same(await present(inventory.removeHosts)('default', {}), { hosts: HOSTS - 256 });
});

t.test('what is below a crowded host goes in pieces, of which nothing is told', async (t) => {
    const { inventory, pool, statements, count } = await workspace(t);
    await pool.query(`insert into scanwire.services (host_id, port, proto, state, name, created_at, updated_at)
        select (select id from scanwire.hosts where address = '10.0.23.112'), n, 'tcp', 'open', 'http', now(), now() from generate_series(1, 3000) n`);
    await pool.query(`insert into scanwire.notes (workspace_id, host_id, service_id, ntype, data, created_at, updated_at)
        select 1, host_id, id, 'banner', '{}', now(), now() from scanwire.services where port <= 1200`);
    const address = { first: '10.0.23.110', last: '10.0.23.113' };
    t.same(await inventory.removeHosts('default', { address }), { hosts: 4 });
    t.equal(await count(), HOSTS - 4);
    const pieces = (table: string): number =>
        statements.filter((text) => text.startsWith('with next') && text.includes(`delete from scanwire.${table} rows`)).length;
    t.same([pieces('services'), pieces('notes')], [7, 3]);
    const told = 'select kind, count(*)::integer as count from scanwire.tombstones group by kind';
    t.same((await pool.query(told)).rows, [{ kind: 'hosts', count: 4 }]);
});
