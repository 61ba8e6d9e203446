import t from 'tap';
import { postgresInventory } from '../../../../adapters/postgres/index.ts';
import { ScanwireError } from '../../../../lib/errors.ts';
import type { HostInput, ServiceInput } from '../../../../lib/inventory/host.ts';
import { importCounts } from '../../../../lib/inventory/import-counts.ts';
import type { Selection } from '../../../../lib/inventory/selection.ts';
import type { Collection } from '../../../../lib/inventory/store.ts';
import { databases, startAfresh } from '../databases.ts';

const AT = new Date('2026-11-21T09:30:00.123Z');
const LATER = new Date('2026-11-22T09:30:00.456Z');

for (const { name, openMigrated } of databases) {
    t.test(`inventory on ${name}`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        t.beforeEach(() => startAfresh(pool));
        let now = AT;
        t.beforeEach(() => {
            now = AT;
        });
        const store = postgresInventory({ pool, clock: () => now });

        t.test('imports a host with its services and gives it back', async (t) => {
            const { workspace, hosts, services } = await store.importHosts(
                'default',
                each([{ address: '192.0.2.7', mac: '00:11:22:33:44:55', arch: 'x64', nexpose_data_asset_id: 7, services: [ssh, https] }]),
            );
            t.same([hosts, services], [importCounts({ new: 1 }), importCounts({ new: 2 })]);

            const [host] = await all(store.hosts, [workspace.id]);
            t.match(host, { address: '192.0.2.7', name: '192.0.2.7', state: 'alive', mac: '00:11:22:33:44:55', service_count: 2 });
            t.same([host?.created_at, host?.updated_at, host?.nexpose_data_asset_id], [AT, AT, 7]);
            const found = await all(store.services, [workspace.id, host?.id ?? 0]);
            t.same(
                found.map(({ port }) => port),
                [22, 443],
            );
        });

        t.test('keeps what an update does not mention, and clears what it sets to null', async (t) => {
            const { workspace } = await store.importHosts(
                'default',
                each([{ address: '192.0.2.7', info: 'old', comm: 'kept', os_name: 'Linux' }]),
            );
            now = LATER;
            const { hosts } = await store.importHosts('default', each([{ address: '192.0.2.7', info: null, os_name: '' }]));
            const [host] = await all(store.hosts, [workspace.id]);

            t.same(hosts, importCounts({ changed: 1 }));
            t.match(host, { info: null, comm: 'kept', os_name: '' });
            t.same([host?.created_at, host?.updated_at], [AT, LATER]);
        });

        t.test('lists as rows what it has no text of, and writes those of before it kept any', async (t) => {
            const { workspace } = await store.importHosts('default', each([{ address: '192.0.2.7' }, { address: '192.0.2.8' }]));
            const written = async (): Promise<unknown> => {
                const batches: unknown[] = [];
                for await (const batch of store.hosts.listText?.([workspace.id]) ?? []) {
                    batches.push(typeof batch === 'string' ? JSON.parse(`[${batch}]`) : batch);
                }
                return batches;
            };
            t.match(await written(), [[{ address: '192.0.2.7', updated_at: '2026-11-21T09:30:00+00:00' }, { address: '192.0.2.8' }]]);

            await pool.query('alter table scanwire.hosts disable trigger documents; update scanwire.hosts set document = null');
            await pool.query('alter table scanwire.hosts enable trigger documents');
            t.match(await written(), [[{ address: '192.0.2.7', updated_at: '2026-11-21T09:30:00+00:00' }, { address: '192.0.2.8' }]]);

            await pool.query(`update scanwire.hosts set updated_at = '12026-11-21T09:30:00Z' where address = '192.0.2.8'`);
            t.match(await written(), [
                [
                    { address: '192.0.2.7', updated_at: AT },
                    { address: '192.0.2.8', updated_at: new Date('+012026-11-21T09:30:00Z') },
                ],
            ]);
        });

        t.test('writes what others have changed by SQL of their own', async (t) => {
            const { workspace } = await store.importHosts('default', each([{ address: '192.0.2.7', services: [ssh] }]));
            const texts = async ({ listText }: Pick<Collection<{ readonly id: number }>, 'listText'>): Promise<object[]> => {
                let written = '';
                for await (const batch of listText?.([workspace.id]) ?? []) {
                    written += typeof batch === 'string' ? batch : '';
                }
                return JSON.parse(`[${written}]`);
            };
            t.match(await texts(store.hosts), [{ name: '192.0.2.7', os_name: '' }]);
            await pool.query(`update scanwire.hosts set name = 'köln "1"', os_name = 'Plan 9', purpose = default`);
            await pool.query(`update scanwire.services set info = E'line\\nbreak'`);
            await pool.query('insert into scanwire.hosts (workspace_id, address, created_at, updated_at) values ($1, $2, $3, $3)', [
                workspace.id,
                '192.0.2.8',
                AT,
            ]);
            t.match(await texts(store.hosts), [{ name: 'köln "1"', os_name: 'Plan 9', service_count: 1 }, { address: '192.0.2.8' }]);
            t.match(await texts(store.workspaceServices), [{ info: 'line\nbreak' }]);
            await pool.query('delete from scanwire.services');
            t.match(await texts(store.hosts), [{ service_count: 0 }, {}]);
        });

        t.test('says which ids have run out, and stores none of the import', async (t) => {
            const message =
                'No id is left for new hosts: 2147483647 is the largest that clients read, and ids of what was removed do not come again';
            await pool.query(`select setval('scanwire.hosts_id_seq', 2147483646)`);
            const { workspace } = await store.importHosts('default', each([{ address: '192.0.2.7' }]));
            t.match(await all(store.hosts, [workspace.id]), [{ id: 2_147_483_647 }]);
            const full = store.importHosts('default', each([{ address: '192.0.2.7', name: 'new' }, { address: '192.0.2.8' }]));
            await t.rejects(full, { name: 'ScanwireError', code: 'CONFLICT', message });
            t.match(await all(store.hosts, [workspace.id]), [{ id: 2_147_483_647, name: '192.0.2.7' }]);
            const { hosts } = await store.importHosts('default', each([{ address: '192.0.2.7', name: 'new' }]));
            t.same(hosts, importCounts({ changed: 1 }), 'what is there takes none');
        });

        t.test('writes a long list as it reads it, with what it has no text of in any batch', async (t) => {
            const hostile = '"quoted" \\ \u2028 köln 💾 \u0001\n';
            const hosts = Array.from({ length: 4_000 }, (_, index) => ({ address: `10.0.${index >> 8}.${index & 255}`, info: hostile }));
            const { workspace } = await store.importHosts('default', each(hosts));
            /** Times in whole seconds. */
            const comparable = (rows: readonly object[]): string =>
                JSON.stringify(rows, (key, value) => (key.endsWith('_at') ? Math.floor(new Date(value).getTime() / 1000) : value));
            const written = async (): Promise<readonly [kinds: string, rows: string]> => {
                const [kinds, rows]: [string[], object[]] = [[], []];
                for await (const batch of store.hosts.listText?.([workspace.id]) ?? []) {
                    const isText = typeof batch === 'string' || batch instanceof Uint8Array;
                    rows.push(...(isText ? JSON.parse(`[${Buffer.from(batch).toString()}]`) : batch));
                    kinds.push(typeof batch === 'string' ? 'text' : isText ? 'bytes' : 'rows');
                }
                return [kinds.filter((kind, index) => kind !== kinds[index - 1]).join(), comparable(rows)];
            };
            const assertWritten = async (kinds: string): Promise<void> => {
                const [as, rows] = await written();
                t.equal(as, kinds);
                t.ok(rows === comparable(await all(store.hosts, [workspace.id])), `the rows as ${kinds}`);
            };
            await assertWritten('bytes');
            await pool.query(`alter table scanwire.hosts disable trigger documents;
                update scanwire.hosts set document = null where id % 3 = 0;
                alter table scanwire.hosts enable trigger documents`);
            await assertWritten('bytes');
            await pool.query(`update scanwire.hosts set updated_at = '12026-11-21T09:30:00Z' where id = 2000`);
            await assertWritten('bytes,rows,bytes');
            await pool.query('update scanwire.workspaces set staged_shown = true where id = $1', [workspace.id]);
            await assertWritten('rows');
        });

        t.test('counts nothing below what can be no id', async (t) => {
            const { workspace } = await store.importHosts('default', each([{ address: '192.0.2.7' }]));
            t.equal(await store.hosts.count?.([workspace.id], {}), 1);
            t.equal(await store.hosts.count?.([2 ** 31], {}), 0);
            t.equal(await store.hosts.count?.([0.5], {}), 0);
        });

        t.test('returns IPv6 addresses in canonical text, and without a mask', async (t) => {
            const { workspace } = await store.importHosts(
                'default',
                each([{ address: '2001:db8::1', scope: 'eth0' }, { address: '::ffff:1.2.3.4' }]),
            );
            const hosts = await all(store.hosts, [workspace.id]);
            t.same(
                hosts.map(({ address }) => address),
                ['2001:db8::1', '::ffff:1.2.3.4'],
            );
        });

        t.test('reads notes, sessions and vulnerabilities, which keep the counters of their host', async (t) => {
            const { workspace } = await store.importHosts('default', each([{ address: '192.0.2.7', services: [ssh] }]));
            const [host] = await all(store.hosts, [workspace.id]);
            const hostId = host?.id ?? 0;
            const [service] = await all(store.services, [workspace.id, hostId]);
            const serviceId = service?.id ?? 0;
            await pool.query(`insert into scanwire.notes (workspace_id, host_id, data) values ($1, $2, '{"a": [1]}'), ($1, $2, '{}')`, [
                workspace.id,
                hostId,
            ]);
            await pool.query('insert into scanwire.sessions (host_id, opened_at, "desc") values ($1, $2, $3)', [hostId, AT, 'shell']);
            await pool.query('insert into scanwire.vulns (host_id, service_id, name) values ($1, $2, $3)', [hostId, serviceId, 'CVE']);

            const notes = await all(store.notes, [workspace.id, hostId]);
            t.same([notes.length, notes[0]?.data, notes[0]?.workspace_id], [2, { a: [1] }, workspace.id]);
            const [session] = await all(store.sessions, [workspace.id, hostId]);
            t.same([session?.desc, session?.opened_at, session?.datastore], ['shell', AT, {}]);
            const [vuln] = await all(store.vulns, [workspace.id, hostId, serviceId]);
            t.match(vuln, { name: 'CVE', service_id: serviceId, exploited_at: null });
            t.equal(await store.vulns.get([workspace.id, hostId, serviceId + 1], vuln?.id ?? 0), null);

            t.match(await store.hosts.get([workspace.id], hostId), { note_count: 2, vuln_count: 1, service_count: 1 });
            await pool.query('delete from scanwire.services where id = $1', [serviceId]);
            t.match(await store.hosts.get([workspace.id], hostId), { note_count: 2, vuln_count: 0, service_count: 0 });
        });

        t.test('leaves nothing behind, not even aside, of an import whose source fails', async (t) => {
            await t.rejects(store.importHosts('new', failing(1200)), { message: 'the source broke' });
            const { rows } = await pool.query('select from scanwire.import_batches');
            t.equal(rows.length, 0);
            t.same(
                (await all(store.workspaces, [])).map(({ name }) => name),
                ['default'],
            );
        });

        t.test('refuses a value that the database cannot hold, and stores none of the import', async (t) => {
            const addressless = { address: undefined as unknown as string };
            for (const [bad, message] of [
                [{ info: 'nul \0 byte' }, /: info must not contain NUL/],
                [{ address: 'fe80::1%eth0' }, /: it has text that is not of its form, for example no address$/],
                [{ nexpose_data_asset_id: 2 ** 40 }, /: it has a number that is too large$/],
                [addressless, /: it has nothing where something must be$/],
            ] as const) {
                const input: HostInput[] = [{ address: '192.0.2.8' }, { address: '192.0.2.7', ...bad }];
                const refused = store.importHosts('default', each(input));
                await t.rejects(refused, { name: 'ScanwireError', code: 'INVALID_INPUT', message });
            }

            const [workspace] = await all(store.workspaces, []);
            t.same(await all(store.hosts, [workspace?.id ?? 0]), []);
        });

        t.test('lets others work while the source of an import is slow', async (t) => {
            const { promise, resolve } = withResolvers();
            async function* slow(): AsyncGenerator<HostInput> {
                yield { address: '192.0.2.7' };
                await promise;
            }

            const importing = store.importHosts('default', slow());
            t.equal((await store.ensureWorkspace('meanwhile')).name, 'meanwhile');
            resolve();
            t.same((await importing).hosts, importCounts({ new: 1 }));
        });

        t.test('stores the same hosts of two imports at once a single time', async (t) => {
            const imports = [1, 2, 3].map(() => store.importHosts('fresh', each(manyHosts(600))));
            const summaries = await Promise.all(imports);
            t.equal(sum(summaries.map(({ hosts }) => hosts.new)), 600);
            t.equal(sum(summaries.map(({ hosts }) => hosts.unchanged)), 1200);
        });

        t.test('selects by what an import that is shown lays over hosts, and in the order of its changes', async (t) => {
            const { workspace } = await store.importHosts('default', each(manyHosts(5)));
            const [, second, third] = await all(store.hosts, [workspace.id]);
            const lay = `insert into scanwire.staged_hosts (workspace_id, host_id, updated_at, fields) values ($1, $2, $3, $4)`;
            await pool.query(lay, [workspace.id, second?.id, LATER, '{"os_name": "Plan 9", "name": ""}']);
            await pool.query(lay, [workspace.id, third?.id, new Date(AT.getTime() - 1000), '{"os_name": "Inferno"}']);
            const found = async (selection: Selection) => {
                const addresses: string[] = [];
                for await (const batch of store.hosts.select?.([workspace.id], selection) ?? []) {
                    addresses.push(...batch.map(({ address }) => address));
                }
                return addresses;
            };
            const since = { updated_since: new Date(0) };
            t.same(await found({ where: since, limit: 3 }), ['10.0.0.0', '10.0.0.1', '10.0.0.2']);
            t.same(await found({ where: { os_name: 'Plan 9' } }), []);

            await pool.query('update scanwire.workspaces set staged_shown = true where id = $1', [workspace.id]);
            t.same(await found({ where: since }), ['10.0.0.2', '10.0.0.0', '10.0.0.3', '10.0.0.4', '10.0.0.1']);
            t.same(await found({ where: since, limit: 3 }), ['10.0.0.2', '10.0.0.0', '10.0.0.3']);
            const after = { id: second?.id ?? 0, updated_at: AT };
            t.same(await found({ where: since, after }), ['10.0.0.3', '10.0.0.4', '10.0.0.1']);
            t.same(await found({ where: { ...since, os_name: 'Plan 9', search: 'PLAN' } }), ['10.0.0.1']);
            t.same(await found({ where: { name: '10.0.0.1' } }), ['10.0.0.1']);
            t.equal(await store.hosts.count?.([workspace.id], { updated_since: LATER }), 1);
        });

        t.test('rejects what it is asked with UNAVAILABLE after the pool has ended', async (t) => {
            const other = await openMigrated();
            const closed = postgresInventory({ pool: other.pool });
            await other.stop();
            await t.rejects(all(closed.hosts, [1]), { code: 'UNAVAILABLE' });
            await t.rejects(closed.importHosts('default', each([])), { code: 'UNAVAILABLE' });
        });
    });
}

t.test('reports a server that does not answer as UNAVAILABLE', async (t) => {
    const { default: pg } = await import('pg');
    const pool = new pg.Pool({ connectionString: 'postgres://postgres@127.0.0.1:1/none' });
    t.after(() => pool.end());
    const error = await postgresInventory({ pool })
        .workspaces.get([], 1)
        .catch((error: unknown) => error);
    t.ok(error instanceof ScanwireError);
    t.match(error, { code: 'UNAVAILABLE', message: 'The database cannot be used now: nothing listens at its address (ECONNREFUSED)' });
});

const ssh: ServiceInput = { port: 22, proto: 'tcp', state: 'open', name: 'ssh', info: null };
const https: ServiceInput = { port: 443, proto: 'tcp', state: 'open', name: 'https', info: 'nginx' };

async function* each<T>(values: readonly T[]): AsyncGenerator<T> {
    yield* values;
}

function manyHosts(count: number): HostInput[] {
    return Array.from({ length: count }, (_, index) => ({ address: `10.0.${index >> 8}.${index & 255}` }));
}

async function* failing(after: number): AsyncGenerator<HostInput> {
    yield* manyHosts(after);
    throw new Error('the source broke');
}

async function all<Row extends { readonly id: number }>(collection: Collection<Row>, parents: readonly number[]): Promise<Row[]> {
    const rows: Row[] = [];
    for await (const batch of collection.list(parents)) {
        rows.push(...batch);
    }

    return rows;
}

function sum(values: readonly number[]): number {
    return values.reduce((total, value) => total + value, 0);
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
    let resolve: () => void = () => {};
    const promise = new Promise<void>((done) => {
        resolve = done;
    });
    return { promise, resolve };
}
