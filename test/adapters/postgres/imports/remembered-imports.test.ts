import t from 'tap';
import { record } from '../../../../adapters/contract/records/fixture.ts';
import { type PoolLike, postgresInventory, postgresRecords } from '../../../../adapters/postgres/index.ts';
import type { HostInput, ServiceInput } from '../../../../lib/inventory/host.ts';
import { importCounts } from '../../../../lib/inventory/import-counts.ts';
import type { ImportOptions, ImportProgress, ImportSummary } from '../../../../lib/inventory/store.ts';
import { databases, startAfresh } from '../databases.ts';
import { dyingAt, leasesEnd, setAhead } from '../failing-pools.ts';
import { all, each, manyHosts } from './imported.ts';

const ssh: ServiceInput = { port: 22, proto: 'tcp', state: 'open', name: 'ssh', info: null };
const scan: readonly HostInput[] = [
    { address: '192.0.2.7', name: 'seven', services: [ssh], notes: [{ ntype: 'a', data: {} }], vulns: [{ name: 'b', info: null }] },
    { address: '192.0.2.8', state: 'down' },
    ...manyHosts(320),
];
const NAMED = { hosts: 322, services: 1, notes: 1, vulns: 1 };

/** An import of a scan whose bytes have this digest. */
function from(id: string): ImportOptions {
    return { origin: { id, arrived: async () => {} } };
}

/** Imports a scan. Resolves to whether its hosts were looked at. */
async function isRead(pool: PoolLike, options: ImportOptions = from('scan'), hosts = scan): Promise<boolean> {
    let read = false;
    async function* reading(): AsyncGenerator<HostInput> {
        read = true;
        yield* hosts;
    }
    await postgresInventory({ pool }).importHosts('default', reading(), options);
    return read;
}

/** The same pool, which counts the statements that match. */
function counting(pool: PoolLike, statement: RegExp): PoolLike & { count(): number } {
    let count = 0;
    const note = (text: string): void => {
        count += statement.test(text) ? 1 : 0;
    };
    const noting = (query: PoolLike['query']): PoolLike['query'] =>
        ((text: string, ...values: unknown[]) => {
            note(String((text as unknown as { readonly text?: string }).text ?? text));
            return (query as (...given: unknown[]) => unknown)(text, ...values);
        }) as PoolLike['query'];
    return {
        ...(pool.embedded === true && { embedded: true }),
        query: noting(pool.query.bind(pool)),
        async connect() {
            const client = await pool.connect();
            return {
                query: noting(client.query.bind(client)),
                on: client.on.bind(client),
                removeListener: client.removeListener.bind(client),
                release: client.release.bind(client),
            } as Awaited<ReturnType<PoolLike['connect']>>;
        },
        count: () => count,
    };
}

async function value<T>(pool: PoolLike, sql: string): Promise<T> {
    const { rows } = await pool.query<{ value: T }>(`select (${sql}) as value`);
    return rows[0]?.value as T;
}

const TABLES = ['hosts', 'services', 'notes', 'vulns'];
/** Every version of every row has its own. */
const VERSIONS = `select string_agg(version, ' ' order by version) from (
    ${TABLES.map((table) => `select concat('${table}', id, ':', xmin) as version from scanwire.${table}`).join(' union all ')}
) rows`;

const SEEN = `select json_agg(json_build_array(host(address), seen_at) order by address)
    from scanwire.sightings join scanwire.hosts on hosts.id = host_id where address << '192.0.2.0/24'`;

type SeenHost = readonly [address: string, at: string | null];

const LEFT = `select concat_ws(' ', (select count(*) from scanwire.remembered_imports), (select count(*) from scanwire.import_batches),
    (select count(*) from scanwire.workspaces where import_id is not null or staged_shown or generation < 0))`;

/** What is done by hand, or by others, after which a scan is looked at again. */
const CHANGES: readonly (readonly [what: string, change: (pool: PoolLike) => Promise<unknown>])[] = [
    ...[
        'update scanwire.hosts set name = name where id = 1',
        "update scanwire.services set state = 'closed'",
        'delete from scanwire.services',
        "insert into scanwire.notes (workspace_id, host_id, data) select workspace_id, id, '{}' from scanwire.hosts limit 1",
        'update scanwire.vulns set info = $$other$$',
        'truncate scanwire.vulns',
        "update scanwire.workspaces set boundary = '0.0.0.0/0', limit_to_network = true",
        "update scanwire.remembered_imports set version = '0.0.9'",
    ].map((sql) => [sql, (pool: PoolLike) => pool.query(sql)] as const),
    [
        'another import',
        (pool) => postgresInventory({ pool }).importHosts('default', each([{ address: '192.0.2.7', services: [{ ...ssh, port: 23 }] }])),
    ],
    ['a removal', (pool) => postgresInventory({ pool }).expireHosts('default', { notSeenSince: new Date(Date.now() + 3_600_000) })],
    [
        'hosts that were moved',
        async (pool) => {
            await postgresInventory({ pool }).ensureWorkspace('other');
            await postgresInventory({ pool }).moveHosts([1], 'other');
        },
    ],
    ['an enrichment', (pool) => postgresRecords({ pool }).add([record()], { enrich: { workspace: 'default' } })],
];

for (const { name, openMigrated } of databases) {
    t.test(`imports that are remembered by ${name}`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        t.beforeEach(async () => {
            await startAfresh(pool);
            await setAhead(pool, 0);
        });

        t.test('see the hosts and write nothing else', async (t) => {
            const progress: ImportProgress[] = [];
            await isRead(pool);
            const [versions, seen] = [await value(pool, VERSIONS), await value<SeenHost[]>(pool, SEEN)];
            await setAhead(pool, 60);
            const counted = counting(pool, /insert into scanwire\.import_batches/);
            const store = postgresInventory({ pool: counted });
            const again: ImportSummary = await store.importHosts('default', each([]), {
                ...from('scan'),
                onProgress: (told) => progress.push(told),
            });
            const unchanged = Object.entries(NAMED).map(([kind, count]) => [kind, importCounts({ unchanged: count })]);
            const { workspace, ...counts } = again;
            t.same(counts, Object.fromEntries(unchanged));
            t.equal(workspace.name, 'default');
            t.equal(counted.count(), 0);
            t.equal(await value(pool, VERSIONS), versions);
            const [up, down] = await value<SeenHost[]>(pool, SEEN);
            t.notSame(up, seen[0]);
            t.same(down, ['192.0.2.8', null]);
            t.equal(
                await value(pool, "select count(*)::integer from scanwire.sightings where seen_at > scanwire.now() - interval '30 s'"),
                321,
            );
            t.equal(await value(pool, LEFT), '1 0 0');
            t.strictSame(
                progress.filter(({ done }) => done === 321),
                [{ phase: 'storing', done: 321, total: 321, ahead: {} }],
            );
            const { workspace: _same, ...compared } = await store.importHosts('default', each(scan));
            t.same(compared, counts, 'as an import that looks at them');
        });

        for (const [what, change] of CHANGES) {
            t.test(`are made again after: ${what}`, async (t) => {
                t.equal(await isRead(pool), true);
                t.equal(await isRead(pool), false);
                await change(pool);
                t.equal(await isRead(pool), true);
                const { rows } = await pool.query('select name from scanwire.hosts where workspace_id = 1');
                t.equal(rows.length >= 322, true);
            });
        }

        t.test('are several of a workspace, as long as none of them changes it', async (t) => {
            const other = [{ address: '192.0.2.9' }];
            t.equal(await isRead(pool), true);
            t.equal(await isRead(pool, from('other'), other), true);
            t.equal(await isRead(pool), true);
            t.equal(await isRead(pool, from('other'), other), false);
            t.equal(await isRead(pool), false);
            t.equal(await isRead(pool, { ...from('scan'), replace: true }), true);
            t.equal(await isRead(pool, from('other'), other), true);
        });

        t.test('are forgotten by the oldest where they would be too many', async (t) => {
            await isRead(pool);
            await isRead(pool, from('second'));
            await pool.query("update scanwire.remembered_imports set host_count = 999500 where origin = 'second'");
            t.equal(await isRead(pool, from('third')), true);
            t.equal(await value(pool, 'select string_agg(origin, $$ $$ order by origin) from scanwire.remembered_imports'), 'third');
            await isRead(pool, from('third'));
            await isRead(pool, from('fourth'));
            t.equal(await value(pool, 'select string_agg(origin, $$ $$ order by origin) from scanwire.remembered_imports'), 'fourth third');
        });

        t.test('are not those that were not shown', async (t) => {
            const broken = async function* (): AsyncGenerator<HostInput> {
                yield* scan;
                throw new Error('cut off');
            };
            await t.rejects(postgresInventory({ pool }).importHosts('default', broken(), from('scan')), { message: 'cut off' });
            t.equal(await value(pool, LEFT), '0 0 0');
            const died = postgresInventory({ pool: dyingAt(pool, /update scanwire\.remembered_imports set counts/, 1) });
            await t.rejects(died.importHosts('default', each(scan), from('scan')), { message: 'killed' });
            t.match(await value(pool, LEFT), /^1 /);
            await leasesEnd(pool);
            t.equal(await isRead(pool, {}, []), true);
            t.match(await value(pool, LEFT), /^0 \d+ 0$/);
            t.equal(await isRead(pool), true);
            t.equal(await isRead(pool), false);
        });

        t.test('have seen nobody where they die before their end, and are remembered still', async (t) => {
            await isRead(pool);
            const seen = await value(pool, SEEN);
            await setAhead(pool, 60);
            const died = postgresInventory({ pool: dyingAt(pool, /hosts_until = null/, 1) });
            await t.rejects(died.importHosts('default', each(scan), from('scan')), { message: 'killed' });
            t.notSame(await value(pool, SEEN), seen, 'some were noted');
            await setAhead(pool, 120);
            await isRead(pool, {}, [{ address: '192.0.2.9' }]);
            t.same((await value<SeenHost[]>(pool, SEEN)).slice(0, 2), seen);
            t.equal(await isRead(pool), true, 'a host came');
            t.equal(await isRead(pool), false);
        });

        t.test('take no host for seen later than another import has seen it', async (t) => {
            await isRead(pool);
            const arrived = async (): Promise<void> => {
                await setAhead(pool, 60);
                await isRead(pool, {}, [{ address: '192.0.2.7', name: 'other' }]);
            };
            await postgresInventory({ pool }).importHosts('default', each([]), { origin: { id: 'scan', arrived } });
            t.equal(await value(pool, "select seen_at > scanwire.now() - interval '30 s' from scanwire.sightings where host_id = 1"), true);
            t.equal(await isRead(pool), true);
        });

        t.test('make no workspace that was removed while they came', async (t) => {
            await isRead(pool);
            const arrived = async (): Promise<void> => {
                await postgresInventory({ pool }).removeWorkspace('default');
            };
            const importing = postgresInventory({ pool }).importHosts('default', each([]), { origin: { id: 'scan', arrived } });
            await t.rejects(importing, { code: 'CONFLICT' });
            t.equal(await value(pool, 'select count(*)::integer from scanwire.workspaces'), 0);
        });

        t.test('do not take the services that they have closed for named', async (t) => {
            const open = [{ address: '192.0.2.7', services: [ssh, { ...ssh, port: 23 }] }];
            const closed: HostInput[] = [{ address: '192.0.2.7', services: [ssh], closed_ports: { tcp: [[23, 30]] } }];
            await isRead(pool, {}, open);
            const told = async (options: ImportOptions) =>
                (await postgresInventory({ pool }).importHosts('default', each(closed), options)).services;
            t.same(await told(from('closed')), importCounts({ unchanged: 1, gone: 1 }));
            const looked = await told(from('closed'));
            t.same(await told(from('closed')), looked);
            t.same(await told({}), looked);
        });

        if (name === 'PostgreSQL') {
            t.test('are not those during which somebody else has changes that he has not committed', async (t) => {
                await isRead(pool, {}, [{ address: '192.0.2.7' }]);
                const client = await pool.connect();
                t.teardown(() => client.release(true));
                await client.query('begin');
                await client.query('update scanwire.services set name = name where host_id = 0');
                await isRead(pool);
                t.equal(await value(pool, 'select count(*)::integer from scanwire.remembered_imports'), 0);
                await client.query('commit');
                t.equal(await isRead(pool), true);
                t.equal(await isRead(pool), false);

                await client.query('begin');
                await client.query("update scanwire.hosts set name = 'by hand' where address = '192.0.2.7'");
                t.equal(
                    await value(pool, 'select foreign_writes < last_value from scanwire.remembered_imports, scanwire.foreign_writes'),
                    true,
                );
                await client.query('commit');
                t.equal(await isRead(pool), true);
                t.equal(await value(pool, "select name from scanwire.hosts where address = '192.0.2.7'"), 'seven');
            });
        }

        t.test('are told in a dry run too', async (t) => {
            await isRead(pool);
            const before = await value(pool, SEEN);
            const store = postgresInventory({ pool });
            const dry = await store.importHosts('default', each([]), { ...from('scan'), dryRun: true });
            t.same(dry.hosts, importCounts({ unchanged: 322 }));
            t.same(await value(pool, SEEN), before);
            t.equal((await all(store.workspaces, [])).length, 1);
        });
    });
}
