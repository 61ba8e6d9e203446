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
    return { inventory: postgresInventory({ pool }), count, looks: () => statements.filter((text) => text.includes('looked as')).length };
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
