import { optionalPackage, ScanwireError } from '../../lib/errors.ts';
import { HOST_STATES, normaliseArch } from '../../lib/inventory/host.ts';
import { type InventoryFunctions, type Page, readOnlyInventory } from '../../lib/inventory/read-only.ts';
import type { InventoryStore } from '../../lib/inventory/store.ts';
import type { Executor } from '../../lib/transaction.ts';
import { IMPATIENT, patiently } from '../postgres/database.ts';
import { type HostPool, isHostPool, ownPool } from '../postgres/own-pool.ts';
import { type Readers, readersOf } from '../postgres/readers.ts';

export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';

/** Where the database is: exactly one of `pool` and `connectionString`. */
export interface ScanDatabaseOptions {
    /** A `pg.Pool` of the application's. Its settings are used for a pool of our own, so its sessions stay as they are. */
    readonly pool?: HostPool;
    /** A URL that begins with `postgres://`; needs the package `pg`. */
    readonly connectionString?: string;
    /** Connections at once, 10 by default. */
    readonly connections?: number;
}

/** A scan database that is open. */
export interface ScanDatabase {
    readonly inventory: Required<InventoryStore>;
    /** Ends the connections. */
    close(): Promise<void>;
}

/**
 * The inventory in an existing Metasploit Framework database, read in place. Every session is read-only and ends a statement that takes
 * longer than 4.5 s.
 *
 * @throws ScanwireError `MISCONFIGURED` that names the tables and columns that are missing or may not be read; `UNAVAILABLE`.
 */
export async function openScanDatabase({ pool, connectionString, connections = 10 }: ScanDatabaseOptions): Promise<ScanDatabase> {
    if ((pool === undefined) === (connectionString === undefined)) {
        throw new ScanwireError('MISCONFIGURED', 'openScanDatabase options: pool or connectionString must be given, and not both', {
            field: 'pool',
        });
    }

    const own = ownPool(pool === undefined ? await poolAt(connectionString ?? '') : checkedPool(pool), connections, (client) =>
        client.query(`set default_transaction_read_only = on; set statement_timeout = ${IMPATIENT.statement}`),
    );
    try {
        const database = patiently(own, IMPATIENT);
        const columns = await readColumns(database);
        return { inventory: inventoryOf(database, columns), close: () => own.end() };
    } catch (error) {
        await own.end();
        throw error;
    }
}

function checkedPool(pool: object): HostPool {
    if (!isHostPool(pool)) {
        throw new ScanwireError('MISCONFIGURED', 'openScanDatabase options: pool must be a pool of node-postgres', { field: 'pool' });
    }

    return pool;
}

/** Only its settings are used; it never connects. */
async function poolAt(connectionString: string): Promise<HostPool> {
    if (!/^postgres(ql)?:\/\//.test(connectionString)) {
        throw new ScanwireError('MISCONFIGURED', 'openScanDatabase options: connectionString must begin with postgres://', {
            field: 'connectionString',
        });
    }

    const { Pool } = (await optionalPackage('pg', 'connectionString', () => import('pg'))).default;
    return new Pool({ connectionString });
}

/** What every version of the schema has, and what some versions or editions lack: that goes out as if it were null. */
const TABLES: Readonly<Record<string, { readonly always: readonly string[]; readonly sometimes: readonly string[] }>> = {
    workspaces: {
        always: ['id', 'name', 'created_at', 'updated_at'],
        sometimes: ['boundary', 'description', 'owner_id', 'limit_to_network'],
    },
    hosts: {
        always: [
            'id',
            'workspace_id',
            'created_at',
            'updated_at',
            'address',
            'mac',
            'comm',
            'name',
            'state',
            'os_name',
            'os_flavor',
        ].concat(['os_sp', 'os_lang', 'arch', 'purpose', 'info', 'comments']),
        sometimes: [
            'scope',
            'virtual_host',
            'note_count',
            'vuln_count',
            'service_count',
            'host_detail_count',
            'exploit_attempt_count',
        ].concat(['cred_count', 'nexpose_data_asset_id', 'history_count', 'detected_arch']),
    },
    services: { always: ['id', 'host_id', 'created_at', 'updated_at', 'port', 'proto', 'state', 'name', 'info'], sometimes: [] },
    notes: { always: ['id', 'host_id', 'created_at', 'updated_at', 'ntype', 'data'], sometimes: ['service_id', 'critical', 'seen'] },
    sessions: {
        always: ['id', 'host_id', 'stype', 'via_exploit', 'via_payload', 'desc', 'port', 'platform', 'datastore', 'opened_at', 'closed_at'],
        sometimes: ['close_reason', 'local_id', 'last_seen', 'campaign_id'],
    },
    vulns: {
        always: ['id', 'host_id', 'service_id', 'created_at', 'updated_at', 'name', 'info'],
        sometimes: ['exploited_at', 'vuln_detail_count', 'vuln_attempt_count', 'nexpose_data_vuln_def_id'],
    },
};

/** The type of each column that is there, by `table.column`. */
type Columns = ReadonlyMap<string, string>;

const READ_COLUMNS = `
    select tables.name || '.' || a.attname as column, format_type(a.atttypid, null) as type,
        has_column_privilege(a.attrelid, a.attnum, 'select') as readable
    from unnest($1::text[]) tables (name)
    join pg_attribute a on a.attrelid = to_regclass(tables.name) and a.attnum > 0 and not a.attisdropped`;

async function readColumns(database: Executor): Promise<Columns> {
    const { rows } = await database.query<{ column: string; type: string; readable: boolean }>(READ_COLUMNS, [Object.keys(TABLES)]);
    const types = new Map(rows.map(({ column, type }) => [column, type]));
    const missing = Object.entries(TABLES).flatMap(([table, { always }]) => {
        const absent = always.map((column) => `${table}.${column}`).filter((column) => !types.has(column));
        return absent.length === always.length ? [table] : absent;
    });
    refuse(missing, 'is not one of the Metasploit Framework, or its search_path is another: it lacks');

    const known = new Set(Object.entries(TABLES).flatMap(([table, { always, sometimes }]) => qualified(table, [...always, ...sometimes])));
    refuse(
        rows.filter(({ column, readable }) => known.has(column) && !readable).map(({ column }) => column),
        'does not let this role read (grant select on the tables)',
    );
    return types;
}

function qualified(table: string, columns: readonly string[]): string[] {
    return columns.map((column) => `${table}.${column}`);
}

function refuse(what: readonly string[], why: string): void {
    if (what.length > 0) {
        throw new ScanwireError('MISCONFIGURED', `The scan database ${why} ${what.join(', ')}`, { field: 'connectionString' });
    }
}

type Given = Record<string, unknown>;

/** A statement's parts. `rows` stands for the resource's own table, `workspace` for the workspace of the path. */
interface Source {
    readonly table: string;
    readonly from: string;
    /** Columns that hold the ids of the path, from the outside in. */
    readonly parents: readonly string[];
    /** Expressions for columns that do not go out as they are. */
    readonly computed?: Readonly<Record<string, string>>;
    /** Mends what SQL cannot. */
    readonly mend?: (row: Given) => Given;
}

const BELOW_HOST = 'join hosts on hosts.id = rows.host_id join workspaces workspace on workspace.id = hosts.workspace_id';
const BELOW_HOST_OR_NONE = `left join hosts on hosts.id = rows.host_id
    join workspaces workspace on workspace.id = coalesce(hosts.workspace_id, rows.workspace_id)`;
const BELOW_SERVICE = 'join services on services.id = rows.service_id and services.host_id = hosts.id';

const SERVICES = belowHost('services', {
    proto: 'lower(rows.proto)',
    state: `case when rows.state in ('open', 'closed', 'filtered') then rows.state else 'unknown' end`,
});
const NOTES = belowHost('notes', { data: 'rows.data::text' }, documented('data'));
const SESSIONS = belowHost('sessions', { datastore: 'rows.datastore::text' }, documented('datastore'));
const VULNS = belowHost('vulns');

function belowHost(table: string, computed: Source['computed'] = {}, mend: Source['mend'] = (row) => row): Source {
    return { table, from: `${table} rows ${BELOW_HOST}`, parents: ['hosts.workspace_id', 'rows.host_id'], computed, mend };
}

/** The same rows below all hosts of a workspace. */
function ofWorkspace(source: Source): Source {
    return { ...source, parents: source.parents.slice(0, 1) };
}

/** Rows of a listing that are read at a time. */
const BATCH = 250;

function inventoryOf(database: Executor, columns: Columns): Required<InventoryStore> {
    const readers = readersOf(database);
    const read = (source: Source) => reading(readers, columns, source);
    const address = columns.get('hosts.address') === 'inet' ? 'host(rows.address)' : 'rows.address::text';
    const functions = {
        workspaces: read({ table: 'workspaces', from: 'workspaces rows', parents: [] }),
        hosts: read({
            table: 'hosts',
            from: 'hosts rows join workspaces workspace on workspace.id = rows.workspace_id',
            parents: ['rows.workspace_id'],
            computed: { address },
            mend: mendedHost,
        }),
        services: read(SERVICES),
        notes: read(NOTES),
        sessions: read(SESSIONS),
        vulns: read({ ...VULNS, from: `${VULNS.from} ${BELOW_SERVICE}`, parents: [...VULNS.parents, 'rows.service_id'] }),
        workspaceServices: read(ofWorkspace(SERVICES)),
        // A note of no host is its workspace's.
        workspaceNotes: read({ ...NOTES, from: `notes rows ${BELOW_HOST_OR_NONE}`, parents: ['workspace.id'] }),
        workspaceSessions: read(ofWorkspace(SESSIONS)),
        workspaceVulns: read(ofWorkspace(VULNS)),
    };
    // What a row holds that the API's schema does not know is the scan database's; it is shown, not refused.
    const options = { check: false, pageSize: BATCH };
    return readOnlyInventory(functions as unknown as InventoryFunctions, options) as Required<InventoryStore>;
}

function reading(
    { database, further }: Readers,
    columns: Columns,
    source: Source,
): (path: readonly number[], page: Page) => Promise<readonly Given[]> {
    const { table, from, parents, computed = {}, mend = (row) => row } = source;
    const { always = [], sometimes = [] } = TABLES[table] ?? {};
    const selected = [...always, ...sometimes]
        .filter((column) => columns.has(`${table}.${column}`))
        .map((column) => `${computed[column] ?? expression(table, column, columns)} as "${column}"`);
    const conditions = [...parents.map((column, index) => `${column} = $${index + 1}`), `rows.id > $${parents.length + 1}`];
    const text = `select ${selected.join(', ')} from ${from} where ${conditions.join(' and ')}
        order by rows.id limit $${parents.length + 2}`;

    return async (path, { after, limit, signal }) => {
        signal?.throwIfAborted();
        const isFurther = after > 0 && limit === BATCH;
        const { rows } = await (isFurther ? further : database).query<Given>(text, [...path, after, limit]);
        signal?.throwIfAborted();
        return rows.map(mend);
    };
}

/** Times that stand in for one that is missing, of the row itself. */
const OTHER_TIMES: Readonly<Record<string, readonly string[]>> = {
    created_at: ['created_at', 'updated_at'],
    updated_at: ['updated_at', 'created_at'],
    opened_at: ['opened_at', 'last_seen', 'closed_at'],
};

function expression(table: string, column: string, columns: Columns): string {
    const type = columns.get(`${table}.${column}`) ?? '';
    const others = OTHER_TIMES[column];
    if (others !== undefined) {
        const own = others.filter((other) => columns.has(`${table}.${other}`)).map((other) => `rows.${other}`);
        const above =
            column === 'updated_at' ? ['workspace.updated_at', 'workspace.created_at'] : ['workspace.created_at', 'workspace.updated_at'];
        const all = table === 'workspaces' ? own : [...own, ...above];
        return `coalesce(${all.map(milliseconds).join(', ')}, 0)`;
    }
    if (type.startsWith('timestamp')) {
        return milliseconds(`rows.${column}`);
    }

    // The driver gives 64 bits as text. An id beyond 32 bits is refused where rows are read, by its name.
    return type === 'bigint' ? `rows."${column}"::double precision` : `rows."${column}"`;
}

/** Times there have no zone and mean UTC; a number is the same whatever the driver and the session make of times. */
function milliseconds(column: string): string {
    return `case when isfinite(${column}) then floor(extract(epoch from ${column}) * 1000)::double precision end`;
}

const STATES: ReadonlySet<unknown> = new Set(HOST_STATES);

function mendedHost(row: Given): Given {
    const [address, zone] = String(row.address).split('%', 2);
    const { arch, detected_arch } = normaliseArch({ arch: row.arch as string | null });
    return {
        ...row,
        address: address?.toLowerCase(),
        scope: zone ?? row.scope,
        // A host of which nobody says it is down counts as alive, as in an import.
        state: row.state === null || row.state === '' || STATES.has(row.state) ? row.state : 'unknown',
        arch,
        detected_arch: row.detected_arch || (detected_arch ?? row.detected_arch),
    };
}

/** Reads the text as a JSON object; other text, such as serialised Ruby, stays as it is under `raw`. */
function documented(column: 'data' | 'datastore'): (row: Given) => Given {
    return (row) => ({ ...row, [column]: document(row[column] as string | null) });
}

function document(text: string | null): unknown {
    if (text === null || text === '') {
        return {};
    }

    try {
        const value: unknown = JSON.parse(text);
        return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { raw: text };
    } catch {
        return { raw: text };
    }
}
