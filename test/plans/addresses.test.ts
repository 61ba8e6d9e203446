import t from 'tap';
import { present } from '../../adapters/contract/assertions.ts';
import { postgresInventory } from '../../adapters/postgres/index.ts';
import { addressRange } from '../../lib/address-range.ts';
import { explainedDatabase } from './executed-plans.ts';

const HOSTS = 25_600;
const LIMIT = 250;
/** Of what is looked up, sorted or counted first, the most is 4,096 hosts. */
const MAX_PAGES = 6_000;
/** Statements cost more to compile than to execute from 100,000 on; in larger tables they seem to cost more than here. */
const MAX_COST = 75_000;

/** How networks lie in the ids of their hosts: the address of number `n`. */
const NETWORKS: readonly [name: string, address: string, blocks: readonly string[]][] = [
    [
        'a /16 after the other',
        `('10.' || n / 200 || '.0.' || n % 200)::inet`,
        ['10.0.0.0/8', '10.0.0.0/9', '10.0.0.0/13', '10.127.0.0/16', '10.127.0.0/24'],
    ],
    [
        'all /16s in turn',
        `('10.' || n % 128 || '.0.' || n / 128)::inet`,
        ['10.0.0.0/8', '10.0.0.0/9', '10.0.0.0/13', '10.127.0.0/16', '10.127.0.0/24'],
    ],
    [
        'all /64s of a /48 in turn',
        `('2001:db8:1:' || to_hex(n % 128) || '::' || to_hex(n / 128 + 1))::inet`,
        ['2001:db8::/32', '2001:db8::/40', '2001:db8:1::/48', '2001:db8:1::/58', '2001:db8:1:7f::/64'],
    ],
    ['crowded /16s', `('10.' || n / 6400 || '.' || n / 256 % 25 || '.' || n % 256)::inet`, ['10.0.0.0/14', '10.2.0.0/16', '10.2.0.0/19']],
    ['a crowded /64', `('2001:db8:1:1::' || to_hex(n))::inet`, ['2001:db8:1:1::/64', '2001:db8:1:1::/116']],
];

for (const [name, address, blocks] of NETWORKS) {
    t.test(`reads a page of a block of addresses, not all hosts in it: ${name}`, async (t) => {
        const { pool, connection } = await explainedDatabase(t);
        await pool.query(
            `insert into scanwire.hosts (workspace_id, address) select w.id, ${address} from scanwire.workspaces w, generate_series(0, $1 - 1) n`,
            [HOSTS],
        );
        await pool.query('vacuum analyze scanwire.hosts');
        const { rows } = await pool.query<{ id: number; middle: number }>(
            'select workspace_id as id, (min(id) + max(id)) / 2 as middle from scanwire.hosts group by workspace_id',
        );
        const [{ id, middle } = { id: 0, middle: 0 }] = rows;
        const { hosts } = postgresInventory({ pool: connection.pool });
        for (const block of blocks) {
            const range = addressRange(block);
            for (const after of [0, middle]) {
                const { rows: expected } = await pool.query<{ id: number }>(
                    'select id from scanwire.hosts where id > $1 and address between $2 and $3 order by id limit $4',
                    [after, range.first, range.last, LIMIT],
                );
                const read: number[] = [];
                const { pages, cost, scans } = await connection.executed(async () => {
                    for await (const batch of present(hosts.select)([id], {
                        where: { address: range },
                        after: { id: after },
                        limit: LIMIT,
                    })) {
                        read.push(...batch.map((host) => host.id));
                    }
                });
                t.same(
                    read,
                    expected.map((host) => host.id),
                    block,
                );
                t.ok(pages <= MAX_PAGES, `${pages} pages for ${block} behind ${after}`);
                t.ok(cost <= MAX_COST, `it is expected to cost ${cost}: ${block} behind ${after}`);
                const whole = scans.filter(({ type, table, pages }) => type === 'Seq Scan' && table === 'hosts' && pages > 0);
                t.same(whole, [], `${block} behind ${after}`);
            }
        }
    });
}
