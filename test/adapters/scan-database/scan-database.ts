import pg from 'pg';
import { testDatabase } from '../../support/test-database.ts';

/**
 * The tables as `spec/dummy/db/structure.sql` of rapid7/metasploit_data_models had them before services and vulns got their `resource`, but that times of workspaces may be
 * null, as in older ones; notes have ids of 64 bits, as a migrated database may. `npm run interop` reads one that the file itself has made.
 */
const SCHEMA = `
    create table workspaces (id serial primary key, name varchar, created_at timestamp, updated_at timestamp, boundary varchar(4096),
        description varchar(4096), owner_id integer, limit_to_network boolean not null default false, import_fingerprint boolean default false);
    create table hosts (id serial primary key, created_at timestamp, address inet not null, mac varchar, comm varchar, name varchar,
        state varchar, os_name varchar, os_flavor varchar, os_sp varchar, os_lang varchar, arch varchar, workspace_id integer not null,
        updated_at timestamp, purpose text, info varchar(65536), comments text, scope text, virtual_host text, note_count integer default 0,
        vuln_count integer default 0, service_count integer default 0, host_detail_count integer default 0,
        exploit_attempt_count integer default 0, cred_count integer default 0, detected_arch varchar, os_family varchar);
    create unique index on hosts (workspace_id, address);
    create table services (id serial primary key, host_id integer, created_at timestamp, port integer not null, proto varchar(16) not null,
        state varchar, name varchar, updated_at timestamp, info text);
    create table notes (id bigserial primary key, created_at timestamp, ntype varchar(512), workspace_id integer not null default 1,
        service_id integer, host_id integer, updated_at timestamp, critical boolean, seen boolean, data text, vuln_id integer);
    create table vulns (id serial primary key, host_id integer, service_id integer, created_at timestamp, name varchar, updated_at timestamp,
        info varchar(65536), exploited_at timestamp, vuln_detail_count integer default 0, vuln_attempt_count integer default 0,
        origin_id integer, origin_type varchar);
    create table sessions (id serial primary key, host_id integer, stype varchar, via_exploit varchar, via_payload varchar, "desc" varchar,
        port integer, platform varchar, datastore text, opened_at timestamp not null, closed_at timestamp, close_reason varchar,
        local_id integer, last_seen timestamp, module_run_id integer);`;

/** Two workspaces, of which the first has `hosts` hosts; rows 1 and 2 of it have the interesting values. */
function rows(hosts: number): string {
    return `
    insert into workspaces (id, name, created_at, updated_at) values
        (1, 'default', '2020-01-02 03:04:05.678', '2021-01-02 03:04:05'), (2, 'lab', null, null);
    insert into hosts (id, workspace_id, address, scope, state, name, arch, created_at, updated_at, os_name) values
        (1, 1, 'fe80::1', 'eth0', 'down', 'köln', 'riscv64', null, '2022-06-01 12:00:00', 'Linux'),
        (2, 1, '2001:DB8::2', null, null, null, null, null, null, null),
        (3, 2, '192.0.2.1', null, 'odd', '', 'x64', null, null, null);
    insert into hosts (workspace_id, address, id, created_at, updated_at, state)
        select 1, '10.0.0.0'::inet + n, 3 + n, '2022-06-01', '2022-06-01', 'alive' from generate_series(1, ${hosts - 2}) n;
    insert into services (id, host_id, port, proto, state, name, info) values (1, 1, 443, 'TCP', 'open', 'https', 'nginx'),
        (2, 1, 53, 'udp', null, null, null);
    insert into notes (id, host_id, service_id, ntype, data) values
        (1, 1, 1, 'a', '{"z":1,"a":{"b":[]}}'), (2, 1, null, 'b', 'BAh7BjoKb3V0cHV0SSIHb2sGOgZFVA=='),
        (3, 1, null, 'c', E'--- \\n:os: Linux\\n'), (4, 1, null, null, null), (5, 1, null, 'd', '[1]'), (6, 1, null, 'e', '7');
    insert into notes (id, workspace_id, ntype) values (7, 2, 'of the workspace');
    insert into vulns (id, host_id, service_id, name) values (1, 1, 1, 'CVE-2014-0160'), (3, 1, null, 'of the host');
    insert into vulns (id, host_id, service_id, name, vuln_detail_count, vuln_attempt_count) values (2, 1, 2, 'x', null, null);
    insert into sessions (id, host_id, "desc", opened_at, datastore) values (1, 1, 'shell', '2022-06-01 12:00:00.250', 'BAh7AA==');`;
}

interface TestScanDatabase {
    readonly url: string;
    /** May write. */
    readonly pool: pg.Pool;
    stop(): Promise<void>;
}

/** A scan database of a test's own. */
export async function scanDatabase(hosts = 2_502): Promise<TestScanDatabase> {
    const database = await emptyScanDatabase();
    await database.pool.query(rows(hosts));
    return database;
}

/** The same without a row. */
export async function emptyScanDatabase(): Promise<TestScanDatabase> {
    const { url, drop } = await testDatabase();
    const pool = new pg.Pool({ connectionString: url, max: 5 });
    pool.on('error', () => {});
    await pool.query(SCHEMA);
    return {
        url,
        pool,
        async stop() {
            await pool.end();
            await drop();
        },
    };
}

/** What a row has besides its nulls. */
export type GivenColumns = Readonly<Record<string, unknown>>;

/** Adds a row to each of the tables, null in each column that may be and is not given. Rows that others refer to come first. */
export async function insertNulls(pool: pg.Pool, tables: Readonly<Record<string, GivenColumns>>): Promise<void> {
    for (const [table, given] of Object.entries(tables)) {
        const { rows: columns } = await pool.query<{ name: string }>(
            `select column_name as name from information_schema.columns where table_schema = 'public' and table_name = $1 and is_nullable = 'YES'`,
            [table],
        );
        const row = { ...Object.fromEntries(columns.map(({ name }) => [name, null])), ...given };
        const names = Object.keys(row).map((name) => `"${name}"`);
        await pool.query(`insert into public.${table} (${names}) values (${names.map((_, index) => `$${index + 1}`)})`, Object.values(row));
    }
}
