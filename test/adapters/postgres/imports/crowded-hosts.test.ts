import t from 'tap';
import { memoryInventory } from '../../../../adapters/memory/index.ts';
import { type PoolLike, postgresInventory } from '../../../../adapters/postgres/index.ts';
import type { HostInput, ServiceInput } from '../../../../lib/inventory/host.ts';
import type { ImportOptions, ImportProgress, InventoryStore } from '../../../../lib/inventory/store.ts';
import { databases, startAfresh } from '../databases.ts';
import { dyingAt, leasesEnd, setAhead } from '../failing-pools.ts';
import { all, each } from './imported.ts';

/** More than fit into three pieces, and no multiple of one. */
const MANY = 1_701;

function ports(count: number, name: string, from = 1): ServiceInput[] {
    return Array.from({ length: count }, (_, index) => ({ port: from + index, proto: 'tcp', state: 'open', name, info: null }));
}

/** Vulnerabilities of which those of one name are told in several pieces, some of them about a service. */
function vulns(info: string): NonNullable<HostInput['vulns']> {
    return Array.from({ length: 1_200 }, (_, index) => ({
        ...(index % 2 === 0 ? {} : { port: MANY, proto: 'tcp' as const }),
        name: `vuln ${index % 3}`,
        info: `${info} ${index}`,
    }));
}

const ADDRESS = '192.0.2.7';
const OTHER: HostInput = { address: '192.0.2.9', name: 'other', services: ports(2, 'other') };
const NOTES: NonNullable<HostInput['notes']> = Array.from({ length: 900 }, (_, index) => ({ ntype: 'alike', data: { index } }));

/** Imports that follow each other, by what is special about them. */
const IMPORTS: Readonly<Record<string, readonly [HostInput, ImportOptions?]>> = {
    'a dry run of a new host': [{ address: ADDRESS, name: 'crowded', services: ports(MANY, 'http') }, { dryRun: true }],
    'a new host': [{ address: ADDRESS, name: 'crowded', services: ports(MANY, 'http') }],
    'the same again': [{ address: ADDRESS, name: 'crowded', services: ports(MANY, 'http') }],
    'more notes and vulnerabilities': [{ address: ADDRESS, services: ports(MANY, 'http'), notes: NOTES, vulns: vulns('first') }],
    'other ones': [{ address: ADDRESS, services: ports(MANY, 'http'), notes: NOTES, vulns: vulns('other') }],
    'a dry run of changes': [{ address: ADDRESS, name: 'renamed', services: ports(MANY, 'https') }, { dryRun: true }],
    'services that have changed, and a host that is down': [{ address: ADDRESS, state: 'down', services: ports(MANY, 'https') }],
    'some that are closed with others': [{ address: ADDRESS, services: ports(800, 'https', 600), closed_ports: { tcp: [[1, 65_535]] } }],
    'a host that is up again': [{ address: ADDRESS, services: ports(900, 'again', 400), state: 'alive' }],
    'a replacement by the same': [{ address: ADDRESS, services: ports(MANY, 'https'), vulns: vulns('other') }, { replace: true }],
    'a replacement by few': [{ address: ADDRESS, services: ports(10, 'https') }, { replace: true }],
    'all of them again': [{ address: ADDRESS, services: ports(MANY, 'https') }],
    'a replacement that closes most of them': [
        { address: ADDRESS, services: ports(3, 'https', 700), closed_ports: { tcp: [[1, 65_535]] }, notes: NOTES, vulns: vulns('some') },
        { replace: true },
    ],
    'a replacement with half of the notes': [
        { address: ADDRESS, services: ports(MANY, 'https'), notes: NOTES.slice(0, 300) },
        { replace: true },
    ],
    'a replacement by another host': [OTHER, { replace: true }],
    'one that nobody knows': [{ address: ADDRESS, services: ports(MANY, 'https'), if_known: true }],
};

for (const { name, openMigrated } of databases) {
    t.test(`hosts with very many services, on ${name}`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        t.beforeEach(async () => {
            await startAfresh(pool);
            await setAhead(pool, 0);
        });

        t.test('are imported as by a store in memory', async (t) => {
            let now = Date.parse('2026-01-01T00:00:00Z');
            const clock = (): Date => new Date(now);
            const stores = [postgresInventory({ pool, clock }), memoryInventory({ clock })];
            for (const [what, [host, options = {}]] of Object.entries(IMPORTS)) {
                now += 60_000;
                const [counts, expected] = await Promise.all(
                    stores.map(async (store) => {
                        const { workspace: _, ...counts } = await store.importHosts('default', each([host]), options);
                        return counts;
                    }),
                );
                t.same(counts, expected, `${what}: counts`);
                const [rows = [], expectedRows = []] = await Promise.all(stores.map(shown));
                t.equal(rows.length, expectedRows.length, `${what}: rows`);
                const different = rows.findIndex((row, index) => row !== expectedRows[index]);
                t.equal(rows[different], expectedRows[different], `${what}: the first row that is another`);
            }
            const buried = "select kind from scanwire.tombstones where kind in ('hosts', 'services')";
            t.same((await pool.query(buried)).rows, [{ kind: 'hosts' }], 'what goes with its host is not told by itself');
        });

        t.test('have the last of several services of one port', async (t) => {
            const store = postgresInventory({ pool });
            const services = [...ports(900, 'once'), ...ports(900, 'twice', 400), ...ports(3, 'last')];
            const counts = await store.importHosts('default', each([{ address: ADDRESS, services }]));
            t.equal(counts.services.new, 1_299);
            const { rows } = await pool.query('select name, count(*)::integer as count from scanwire.services group by name order by name');
            t.same(rows, [
                { name: 'last', count: 3 },
                { name: 'once', count: 396 },
                { name: 'twice', count: 900 },
            ]);
        });

        t.test('have the progress of any other', async (t) => {
            const store = postgresInventory({ pool });
            const told = async (name: string, services: number): Promise<readonly ImportProgress[]> => {
                const progress: ImportProgress[] = [];
                const onProgress = (one: ImportProgress): void => void progress.push(one);
                await store.importHosts('default', each([{ address: ADDRESS, services: ports(services, name) }]), { onProgress });
                return progress;
            };
            await told('http', MANY);
            t.strictSame(await told('https', MANY), await told('other', 1));
        });

        for (const [stage, statement, times, isShown] of [
            ['its second piece is stored', /insert into scanwire.staged_services/, 2, false],
            ['changes of its services are moved into place', /service_id = any/, 2, true],
        ] as const) {
            t.test(`are whole when the process dies while ${stage}`, async (t) => {
                const store = postgresInventory({ pool });
                await store.importHosts('default', each([{ address: ADDRESS, services: ports(MANY, 'http') }]));
                const [{ id: workspace = 0 } = {}] = await store.workspaces.get([], 1).then((found) => (found ? [found] : []));
                const dying = postgresInventory({ pool: dyingAt(pool, statement, times) });
                const changed = [...ports(1_000, 'https'), ...ports(2, 'new', 30_000)];
                await dying
                    .importHosts('default', each([{ address: ADDRESS, services: changed }]), { replace: true, onWarning: () => {} })
                    .catch(() => {});
                const seen = async (): Promise<unknown> => {
                    const names = (await all(store.workspaceServices, [workspace])).map((row) => row.name);
                    const [host] = await all(store.hosts, [workspace]);
                    return [names.filter((one) => one === 'http').length, names.length, host?.service_count];
                };
                const expected = isShown ? [0, 1_002, 1_002] : [MANY, MANY, MANY];
                t.same(await seen(), expected);
                await leasesEnd(pool);
                await store.importHosts('default', each([OTHER]));
                t.same(await seen(), [expected[0], (expected[1] ?? 0) + 2, expected[2]]);
                t.same(await leftovers(pool), { hosts: 0, services: 0, named: 0 });
            });
        }
    });
}

/** What a store shows, row by row, without the ids that it has given. */
async function shown(store: InventoryStore): Promise<readonly string[]> {
    const { hosts, workspaceServices, workspaceNotes, workspaceVulns } = store as Required<InventoryStore>;
    const rows: readonly object[] = [
        ...(await all(hosts, [1])),
        ...(await all(workspaceServices, [1])),
        ...(await all(workspaceNotes, [1])),
        ...(await all(workspaceVulns, [1])),
    ];
    const isId = ([field]: readonly [string, unknown]): boolean => /(?:^|_)id$/.test(field);
    return rows.map((row) =>
        JSON.stringify(
            Object.entries(row)
                .filter((field) => !isId(field))
                .toSorted(),
        ),
    );
}

async function leftovers(pool: PoolLike): Promise<unknown> {
    const { rows } = await pool.query(`select (select count(*)::integer from scanwire.staged_hosts) as hosts,
        (select count(*)::integer from scanwire.staged_services) as services,
        (select count(*)::integer from scanwire.import_named) as named`);
    return rows[0];
}
