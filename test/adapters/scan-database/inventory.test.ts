import pg, { type Pool } from 'pg';
import t from 'tap';
import { present } from '../../../adapters/contract/assertions.ts';
import { inventoryContract } from '../../../adapters/contract/index.ts';
import { TABLES } from '../../../adapters/scan-database/columns.ts';
import { openScanDatabase } from '../../../adapters/scan-database/index.ts';
import { addressRange } from '../../../lib/address-range.ts';
import type { Host } from '../../../lib/inventory/host.ts';
import { compareRows, type Filters, matching, type Selection } from '../../../lib/inventory/selection.ts';
import type { Collection, InventoryStore } from '../../../lib/inventory/store.ts';
import { timestampFormat } from '../../../lib/timestamp.ts';
import { collect } from '../../support/collect.ts';
import { OldPool } from '../../support/old-pool.ts';
import { seeded } from '../../support/seeded.ts';
import { tapTest } from '../contract/tap-test.ts';
import { scanDatabase } from './scan-database.ts';

const HOSTS = 2_502;

t.test('keeps the laws of inventories', async (t) => {
    const { url, pool, stop } = await scanDatabase(HOSTS);
    t.after(stop);
    const { inventory, close } = await openScanDatabase({ connectionString: url });
    t.after(close);

    inventoryContract(tapTest(t), () => ({
        store: inventory,
        rows: {
            workspaces: [{ id: 1, name: 'default' }, { id: 2 }],
            hosts: [
                { id: 1, workspace_id: 1, address: 'fe80::1', scope: 'eth0' },
                { id: 2, workspace_id: 1, address: '2001:db8::2', name: '2001:db8::2', os_name: '' },
                { id: 3, workspace_id: 2, address: '192.0.2.1', name: '192.0.2.1', state: 'unknown', arch: 'x64' },
                ...Array.from({ length: HOSTS - 2 }, (_, index) => ({ id: 4 + index, workspace_id: 1 })),
            ],
            services: [
                { id: 1, host_id: 1, port: 443, proto: 'tcp', state: 'open' },
                { id: 2, host_id: 1, port: 53, proto: 'udp', state: 'unknown', name: '' },
            ],
            notes: [
                ...[1, 2, 3, 4, 5, 6].map((id) => ({ id, workspace_id: 1, host_id: 1 })),
                { id: 7, workspace_id: 2, host_id: null, ntype: 'of the workspace' },
            ],
            sessions: [{ id: 1, host_id: 1, desc: 'shell', datastore: { raw: 'BAh7AA==' } }],
            vulns: [
                { id: 1, host_id: 1, service_id: 1, name: 'CVE-2014-0160' },
                { id: 2, host_id: 1, service_id: 2 },
                { id: 3, host_id: 1, service_id: null, name: 'of the host' },
            ],
        },
        openReads: async () => {
            const { rows } = await pool.query<{ held: number }>(`select count(*)::integer as held from pg_stat_activity
                where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()`);
            return rows[0]?.held ?? -1;
        },
    }));
});

t.test('over a pool of the application', async (t) => {
    const { pool, stop } = await scanDatabase(10);
    t.after(stop);
    const { inventory, close } = await openScanDatabase({ pool });
    t.after(close);

    t.test('takes a missing time from the row, else from its workspace, as UTC', async (t) => {
        const [first, second] = await all(inventory.hosts, [1]);
        t.same([first?.created_at, first?.updated_at], [new Date('2022-06-01T12:00:00Z'), new Date('2022-06-01T12:00:00Z')]);
        t.same([second?.created_at, second?.updated_at], [new Date('2020-01-02T03:04:05.678Z'), new Date('2021-01-02T03:04:05Z')]);
        const [, lab] = await all(inventory.workspaces, []);
        t.same(lab?.created_at, new Date(0), 'where nobody knows one');
        t.same((await inventory.sessions.get([1, 1], 1))?.opened_at, new Date('2022-06-01T12:00:00.250Z'));
    });

    t.test('keeps an unknown arch beside it, and fills what is null', async (t) => {
        t.match(await inventory.hosts.get([1], 1), { arch: 'Unknown', detected_arch: 'riscv64', state: 'down', history_count: 0 });
        t.match(await inventory.hosts.get([1], 2), { arch: null, detected_arch: null, state: 'alive', mac: '', info: null });
        t.match(await inventory.vulns.get([1, 1, 2], 2), { info: null, vuln_detail_count: 0, vuln_attempt_count: 0 });
    });

    t.test('gives note data as an object', async (t) => {
        t.same(
            (await all(inventory.notes, [1, 1])).map(({ data }) => data),
            [
                { z: 1, a: { b: [] } },
                { raw: 'BAh7BjoKb3V0cHV0SSIHb2sGOgZFVA==' },
                { raw: '--- \n:os: Linux\n' },
                {},
                { raw: '[1]' },
                { raw: '7' },
            ],
        );
    });

    t.test('leaves the sessions of the application as they are', async (t) => {
        const { rows } = await pool.query('show default_transaction_read_only');
        t.same(rows, [{ default_transaction_read_only: 'off' }]);
    });

    t.test('refuses an id that the API has no form for, by its name', async (t) => {
        await pool.query('insert into notes (id, host_id) values (9007199254740993, 1)');
        await t.rejects(all(inventory.notes, [1, 1]), { code: 'MISCONFIGURED', field: 'notes[6].id' });
        await pool.query('delete from notes where id > 2147483647');
    });

    t.test('reads from older and newer schemas', async (t) => {
        await pool.query(`alter table hosts drop column scope, drop column detected_arch, drop column cred_count, add column history_count integer;
            alter table services add column resource jsonb; alter table hosts alter column address type text using host(address);
            update hosts set history_count = 3, address = 'FE80::1%eth1' where id = 1`);
        const older = await openScanDatabase({ pool });
        t.after(older.close);
        t.match(await older.inventory.hosts.get([1], 1), { address: 'fe80::1', scope: 'eth1', history_count: 3, cred_count: 0 });
    });

    t.test('says at the start what is missing and what may not be read', async (t) => {
        await pool.query(
            `create role scandb_reader_${process.pid}; grant select on workspaces, hosts, services, notes, vulns to scandb_reader_${process.pid}`,
        );
        t.after(() => pool.query(`drop owned by scandb_reader_${process.pid}; drop role scandb_reader_${process.pid}`));
        const options = `-c role=scandb_reader_${process.pid}`;
        const denied = new pg.Pool({ ...pool.options, options });
        t.after(() => denied.end());
        await t.rejects(openScanDatabase({ pool: denied }), { code: 'MISCONFIGURED', message: /grant select.*sessions\.id, / });

        await pool.query('alter table sessions rename to elsewhere; alter table vulns drop column name');
        await t.rejects(openScanDatabase({ pool }), { code: 'MISCONFIGURED', message: /it lacks sessions, vulns\.name$/ });
        // It goes out with no note, but says whose they are.
        await pool.query(
            'alter table elsewhere rename to sessions; alter table vulns add column name text; alter table notes drop column workspace_id',
        );
        await t.rejects(openScanDatabase({ pool }), { code: 'MISCONFIGURED', message: /it lacks notes\.workspace_id$/ });
    });
});

t.test('writes as text what it reads as rows, whatever they hold', async (t) => {
    const { pool, stop } = await scanDatabase(2);
    t.after(stop);
    const opened = async () => {
        const { inventory, close } = await openScanDatabase({ pool });
        t.after(close);
        return inventory.hosts;
    };
    await insertOddHosts(pool, 400);
    const [text, expected] = await bothForms(await opened());
    t.equal(text, expected);

    await pool.query(`alter table hosts drop column scope, drop column detected_arch, drop column vuln_count, add column history_count bigint;
        alter table hosts alter column address type text using upper(host(address)) || case when id % 2 = 0 then '%En0' else '' end;
        update hosts set history_count = id where id % 3 = 0`);
    const [older, expectedOfOlder] = await bothForms(await opened());
    t.equal(older, expectedOfOlder);
    t.match(older, /"address":"10\.1\.0\.\d+".*"scope":"En0"/);

    await pool.query('alter table hosts alter column id type bigint; update hosts set id = 2147483648 where id = 10400');
    await t.rejects(bothForms(await opened()), { code: 'MISCONFIGURED', field: /^hosts\[\d+\]\.id$/ });
});

t.test('writes long listings as it reads them, whether ids lie close together or far apart', async (t) => {
    const { pool, stop } = await scanDatabase(2);
    t.after(stop);
    const { inventory, close } = await openScanDatabase({ pool });
    t.after(close);
    await pool.query(`insert into hosts (id, workspace_id, address, name)
        select 1000 + n + greatest(0, n - 11000) * 6, case when n % 3 = 0 then 2 else 1 end, '10.0.0.0'::inet + n, 'host "' || n || '"'
        from generate_series(1, 24000) n`);
    const [text, expected] = await bothForms(inventory.hosts);
    t.ok(text === expected, `${text.length} and ${expected.length} characters`);
    // A year that the database cannot write makes rows of its batch, and of no other.
    await pool.query(`update hosts set created_at = '12000-01-01' where id in (6001, 120001)`);
    const [mixed, read] = await bothForms(inventory.hosts);
    t.ok(mixed === read, `${mixed.length} and ${read.length} characters`);
});

t.test('reads for a role that may read the columns that are named and no others', async (t) => {
    const { pool, stop } = await scanDatabase(6_000);
    t.after(stop);
    const role = `scandb_columns_${process.pid}`;
    await pool.query(`create role ${role}`);
    t.after(() => pool.query(`drop owned by ${role}; drop role ${role}`));
    for (const [table, { always, sometimes, unseen = [] }] of Object.entries(TABLES)) {
        const { rows } = await pool.query<{ columns: string }>(
            `select string_agg(quote_ident(column_name), ', ') as columns from information_schema.columns
            where table_name = $1 and column_name = any ($2)`,
            [table, [...always, ...sometimes, ...unseen]],
        );
        await pool.query(`grant select (${rows[0]?.columns}) on ${table} to ${role}`);
    }
    const granted = new pg.Pool({ ...pool.options, options: `-c role=${role}` });
    t.after(() => granted.end());
    const [limited, whole] = [await openScanDatabase({ pool: granted }), await openScanDatabase({ pool })];
    t.after(limited.close);
    t.after(whole.close);
    const [text, expected] = await bothForms(limited.inventory.hosts);
    t.ok(text === expected, `${text.length} and ${expected.length} characters`);
    const paths = { workspaces: [], services: [1, 1], notes: [1, 1], sessions: [1, 1], vulns: [1, 1, 1], hostVulns: [1, 1] };
    for (const name of Object.keys(whole.inventory) as (keyof InventoryStore)[]) {
        const path = name in paths ? paths[name as keyof typeof paths] : [1];
        const read = async ({ [name]: collection }: InventoryStore) => {
            const { list, get, count, listText } = present(collection) as Collection<{ readonly id: number }>;
            const rows = (await collect(list(path))).flat();
            return [rows, await get(path, rows[0]?.id ?? 0), await present(count)(path, {}), listText && (await collect(listText(path)))];
        };
        const everything = await read(whole.inventory);
        t.type(everything[1], 'object');
        t.same(await read(limited.inventory), everything, name);
    }
});

t.test('reads fewer services at once than hosts: what is in one of them the scanned machine says', async (t) => {
    const { pool, stop } = await scanDatabase(2);
    t.after(stop);
    const { inventory, close } = await openScanDatabase({ pool });
    t.after(close);
    // A year that the database cannot write makes rows of its batch.
    await pool.query(`insert into services (id, host_id, port, proto, state, created_at)
        select n, 1, n, 'tcp', 'open', case when n = 5000 then '12000-01-01'::timestamp end from generate_series(3, 9000) n`);
    let read = 0;
    for await (const batch of present(inventory.workspaceServices.listText)([1])) {
        read += typeof batch === 'string' || batch instanceof Uint8Array ? 0 : batch.length;
    }
    t.equal(read, 1_000);
});

t.test('names the id that the API has no form for, however many of them there are', async (t) => {
    const { pool, stop } = await scanDatabase(2);
    t.after(stop);
    await pool.query(`alter table hosts alter column id type bigint;
        insert into hosts (id, workspace_id, address)
        select n + case when n > 2000 then 2147481647 else 10 end::bigint, 1, '10.0.0.0'::inet + n from generate_series(1, 12000) n`);
    const { inventory, close } = await openScanDatabase({ pool });
    t.after(close);
    await t.rejects(bothForms(inventory.hosts), { code: 'MISCONFIGURED', field: /^hosts\[\d+\]\.id$/ });
});

t.test('finds hosts by what goes out, whatever they hold', async (t) => {
    const { pool, stop } = await scanDatabase(2);
    t.after(stop);
    const opened = async () => {
        const { inventory, close } = await openScanDatabase({ pool });
        t.after(close);
        return inventory;
    };
    await insertOddHosts(pool, 400);
    const { hosts, workspaceServices } = await opened();
    t.same(hosts.filters, ['state', 'address', 'name', 'os_name', 'arch', 'purpose', 'search', 'updated_since']);
    const listed = await all(hosts, [1]);
    const WHOLE = ['state', 'name', 'arch'] as const;
    const wholes = WHOLE.flatMap((field) => [...new Set(listed.map((host) => host[field]))].map((value) => ({ [field]: value })));
    const wheres: Filters[] = [
        ...wholes.filter((where) => !Object.values(where).includes(null)).slice(0, 60),
        { search: 'QUOTED' },
        { address: addressRange('10.1.0.7-10.1.0.9') },
        { address: addressRange('10.0.0.0/8'), state: 'down' },
        { updated_since: new Date('1969-12-31T23:59:59.5Z') },
        { updated_since: new Date('1970-01-01T00:00:00Z'), arch: 'Unknown' },
    ];
    for (const where of wheres) {
        const expected = listed.filter(matching(where)).sort((one, other) => compareRows('updated_since' in where, one, other));
        const found: Host[] = [];
        for (let page: Host[] | null = null; page === null || page.length === 70; found.push(...page)) {
            const last: Host | undefined = found.at(-1);
            page = await selected(hosts, { where, limit: 70, ...(last && { after: last }) });
        }
        t.same([found, await present(hosts.count)([1], where)], [expected, expected.length], Object.keys(where).join());
    }
    t.same((await selected(workspaceServices, { hosts: [1] })).length, 2);
    t.same(await selected(workspaceServices, { hosts: [10_001] }), []);

    await pool.query('alter table hosts alter column address type text using host(address)');
    t.notOk((await opened()).hosts.filters?.includes('address'), 'of texts it is not known what lies between two');
});

t.test('lists what has changed in its order, also what changes meanwhile', async (t) => {
    const { pool, stop } = await scanDatabase(2);
    t.after(stop);
    const { inventory, close } = await openScanDatabase({ pool });
    t.after(close);
    await pool.query(`insert into hosts (id, workspace_id, address, updated_at)
        select 1000 + n, 1, '10.0.0.0'::inet + n, '2025-01-01'::timestamp + n * 7919 % 900 * interval '1 minute' from generate_series(1, 900) n`);
    const where = { updated_since: new Date('2025-01-01T00:00:00Z') };
    const before = (await all(inventory.hosts, [1])).filter(matching(where)).sort((one, other) => compareRows(true, one, other));
    t.same(await selected(inventory.hosts, { where, limit: 600 }), before.slice(0, 600));
    const middle = present(before[399]);
    t.same(await selected(inventory.hosts, { where, after: middle }), before.slice(400));
    t.same(await collect(present(inventory.hosts.select)([0], { where })), []);

    const [changed, gone] = [present(before[299]).id, present(before[499]).id];
    const read: Host[] = [];
    for await (const batch of present(inventory.hosts.select)([1], { where })) {
        if (read.length === 0) {
            await pool.query(`update hosts set updated_at = '2025-02-01' where id = ${changed}; delete from hosts where id = ${gone}`);
        }
        read.push(...batch);
    }
    const others = before.map(({ id }) => id).filter((id) => id !== changed && id !== gone);
    t.same(
        read.map(({ id }) => id),
        [...others, changed],
    );
});

async function selected<Row extends { readonly id: number }>({ select }: Collection<Row>, selection: Selection): Promise<Row[]> {
    const rows: Row[] = [];
    for await (const batch of present(select)([1], selection)) {
        rows.push(...batch);
    }
    return rows;
}

/** In the first workspace, with values that JSON, the API or the database take for something else. */
async function insertOddHosts(pool: Pool, count: number): Promise<void> {
    const random = seeded(7);
    const one = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
    const texts = [null, '', '"quoted" \\ back', '\u0001\b\t\n\u007f', '\u2028\ufeff', '💾 köln', "');--", ' x '];
    const times = [null, '2022-06-01 12:00:00.999', '1969-12-31 23:59:59.5', 'infinity', '-infinity', '0044-03-15', '12000-01-01'];
    // A text that must be escaped may be the only one of its row.
    const lone = [...Array.from({ length: 0x20 }, (_, code) => String.fromCharCode(code + 1)), '"', '\\', "'", '%', 'é'];
    const clean = { name: null, mac: '', comm: 'x', scope: null, arch: 'x64', detected_arch: null };
    const values = Array.from({ length: count }, (_, index) => ({
        id: 10_001 + index,
        address: `10.1.${index >> 8}.${index & 255}`,
        // Years that the database cannot write come late, so that a batch without them is written.
        created_at: one(times.slice(0, index < 300 ? 5 : undefined)),
        updated_at: one(times.slice(0, 3)),
        state: one([null, '', 'alive', 'down', 'unknown', 'Down', 'up']),
        arch: one([null, '', 'x64', 'x86_64', 'Unknown', 'riscv64', '"']),
        detected_arch: one([null, '', 'own']),
        name: one(texts),
        mac: one(texts),
        comm: one(texts),
        info: one(texts),
        scope: one(texts),
        vuln_count: one([null, 0, 7]),
        host_detail_count: one([null, 0, 0, 0, 5]),
        exploit_attempt_count: one([0, 0, 0, null, 2147483647]),
        cred_count: one([0, 0, null, 0, 3]),
        ...(index < lone.length && { ...clean, info: lone[index] }),
    }));
    await pool.query('update workspaces set created_at = null where id = 1');
    await pool.query(
        `insert into hosts (id, workspace_id, address, created_at, updated_at, state, arch, detected_arch, name, mac, comm, info, scope, vuln_count,
            host_detail_count, exploit_attempt_count, cred_count)
        select id, 1, address, created_at, updated_at, state, arch, detected_arch, name, mac, comm, info, scope, vuln_count, host_detail_count,
            exploit_attempt_count, cred_count
        from json_populate_recordset(null::hosts, $1)`,
        [JSON.stringify(values)],
    );
}

/** The hosts of the first workspace as the text of an answer, and what it must be. */
async function bothForms(hosts: Collection<Host>): Promise<readonly [text: string, expected: string]> {
    const utc = timestampFormat();
    const form = (rows: readonly Host[]): string =>
        rows.map((row) => JSON.stringify(row, (key, value) => (key.endsWith('_at') ? utc(new Date(value)) : value))).join();
    const batches = [];
    for await (const batch of present(hosts.listText)([1])) {
        batches.push(batch);
    }
    t.notOk(Array.isArray(batches[0]), 'as text');
    t.equal(typeof batches.at(-1), 'object');
    return [
        batches
            .map((batch) => (typeof batch === 'string' ? batch : batch instanceof Uint8Array ? Buffer.from(batch).toString() : form(batch)))
            .join(),
        form(await all(hosts, [1])),
    ];
}

t.test('refuses options that name no database, or two', async (t) => {
    await t.rejects(openScanDatabase({}), { code: 'MISCONFIGURED', field: 'pool' });
    await t.rejects(openScanDatabase({ pool: {} as never }), { code: 'MISCONFIGURED', field: 'pool' });
    await t.rejects(openScanDatabase({ connectionString: '/var/run' }), { code: 'MISCONFIGURED', field: 'connectionString' });
    await t.rejects(openScanDatabase({ connectionString: 'postgres://127.0.0.1:1/x' }), { code: 'UNAVAILABLE' });
});

t.test('refuses a pg whose pools do not prepare their sessions, which could write', async (t) => {
    const { url, stop } = await scanDatabase(2);
    t.after(stop);
    const pool = new OldPool({ connectionString: url });
    t.after(() => pool.end());
    await t.rejects(openScanDatabase({ pool }), {
        code: 'MISCONFIGURED',
        message: /^The pg package is too old for the scan database: its pools do not know onConnect/,
    });
});

async function all<Row extends { readonly id: number }>(collection: Collection<Row>, path: readonly number[]): Promise<Row[]> {
    const rows: Row[] = [];
    for await (const batch of collection.list(path)) {
        rows.push(...batch);
    }
    return rows;
}
