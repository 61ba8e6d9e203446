import t from 'tap';
import { postgresInventory } from '../../adapters/postgres/index.ts';
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
