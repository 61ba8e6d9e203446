import Joi from 'joi';
import { checked } from '../../lib/checked.ts';
import { optionalPackage, ScanwireError } from '../../lib/errors.ts';
import { HOST_FIELDS } from '../../lib/inventory/host.ts';
import { type InventoryFunctions, type Page, readOnlyInventory } from '../../lib/inventory/read-only-inventory.ts';
import { SERVICE_FIELDS, VULN_FIELDS } from '../../lib/inventory/resources.ts';
import type { Collection, InventoryStore } from '../../lib/inventory/store.ts';
import type { Executor } from '../../lib/transaction.ts';
import { IMPATIENT, patiently } from '../postgres/database.ts';
import { type HostPool, isHostPool, ownPool } from '../postgres/own-pool.ts';
import { type Readers, readersOf } from '../postgres/readers.ts';
import { idsWithin } from '../postgres/text-pages.ts';
import { type Columns, type Computed, expression, hostColumns, readColumns, SERVICE_COLUMNS, TABLES } from './columns.ts';
import { below, texts, type WritableFields } from './texts.ts';

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

// The pool as it is: it is an instance of a class.
const optionsSchema: Joi.ObjectSchema<ScanDatabaseOptions & Required<Pick<ScanDatabaseOptions, 'connections'>>> = Joi.object({
    pool: Joi.any(),
    connectionString: Joi.string(),
    connections: Joi.number().integer().min(1).default(10),
}).required();

/**
 * The inventory in an existing Metasploit Framework database, read in place. Every session is read-only and ends a statement that takes
 * longer than 4.5 s.
 *
 * @throws ScanwireError `MISCONFIGURED` that names the tables and columns that are missing or may not be read; `UNAVAILABLE`.
 */
export async function openScanDatabase(options: ScanDatabaseOptions): Promise<ScanDatabase> {
    const given = checked(optionsSchema, options, { subject: 'openScanDatabase options', code: 'MISCONFIGURED' });
    const { pool, connectionString, connections } = given;
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

type Given = Record<string, unknown>;

/** A statement's parts. `rows` stands for the resource's own table, `workspace` for the workspace of the path. */
interface Source {
    readonly table: string;
    readonly from: string;
    /** Columns that hold the ids of the path, from the outside in. */
    readonly parents: readonly string[];
    readonly computed?: Computed;
    /** Mends what SQL cannot. */
    readonly mend?: (row: Given) => Given;
}

const BELOW_HOST = 'join hosts on hosts.id = rows.host_id join workspaces workspace on workspace.id = hosts.workspace_id';
const BELOW_HOST_OR_NONE = `left join hosts on hosts.id = rows.host_id
    join workspaces workspace on workspace.id = coalesce(hosts.workspace_id, rows.workspace_id)`;
const BELOW_SERVICE = 'join services on services.id = rows.service_id and services.host_id = hosts.id';

const SERVICES = belowHost('services', SERVICE_COLUMNS);
const NOTES = belowHost('notes', { data: 'rows.data::text' }, documented('data'));
const SESSIONS = belowHost('sessions', { datastore: 'rows.datastore::text' }, documented('datastore'));
const VULNS = belowHost('vulns');

function belowHost(table: string, computed: Computed = {}, mend: Source['mend'] = (row) => row): Source {
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
    const hosts = {
        table: 'hosts',
        from: 'hosts rows join workspaces workspace on workspace.id = rows.workspace_id',
        parents: ['rows.workspace_id'],
        computed: hostColumns(columns),
    };
    const vulns = { ...VULNS, from: `${VULNS.from} ${BELOW_SERVICE}`, parents: [...VULNS.parents, 'rows.service_id'] };
    const functions = {
        workspaces: read({ table: 'workspaces', from: 'workspaces rows', parents: [] }),
        hosts: read(hosts),
        services: read(SERVICES),
        notes: read(NOTES),
        sessions: read(SESSIONS),
        vulns: read(vulns),
        hostVulns: read(VULNS),
        workspaceServices: read(ofWorkspace(SERVICES)),
        // A note of no host is its workspace's.
        workspaceNotes: read({ ...NOTES, from: `notes rows ${BELOW_HOST_OR_NONE}`, parents: ['workspace.id'] }),
        workspaceSessions: read(ofWorkspace(SESSIONS)),
        workspaceVulns: read(ofWorkspace(VULNS)),
    };
    // What a row holds that the API's schema does not know is the scan database's; it is shown, not refused.
    const options = { check: false, pageSize: BATCH };
    const inventory = readOnlyInventory(functions as unknown as InventoryFunctions, options) as Required<InventoryStore>;
    const written = <Row extends { readonly id: number }>(
        rows: Collection<Row>,
        source: Source,
        fields: WritableFields,
    ): Collection<Row> => ({
        ...rows,
        listText: texts(readers, columns, { ...source, fields }, rows),
    });
    return {
        ...inventory,
        hosts: written(inventory.hosts, hosts, HOST_FIELDS),
        services: written(inventory.services, SERVICES, SERVICE_FIELDS),
        vulns: written(inventory.vulns, vulns, VULN_FIELDS),
        workspaceServices: written(inventory.workspaceServices, ofWorkspace(SERVICES), SERVICE_FIELDS),
        workspaceVulns: written(inventory.workspaceVulns, ofWorkspace(VULNS), { ...VULN_FIELDS, service_id: 'nullableId' }),
    };
}

function reading(
    { database, further }: Readers,
    columns: Columns,
    source: Source,
): (path: readonly number[], page: Page) => Promise<readonly Given[]> {
    const { table, from, parents, computed = {}, mend = (row) => row } = source;
    const { always = [], sometimes = [] } = TABLES[table] ?? {};
    const selected = [...always, ...sometimes]
        .filter((column) => columns.has(`${table}.${column}`) || column in computed)
        .map((column) => `${computed[column] ?? expression(table, column, columns)} as "${column}"`);
    const where = [...below(parents), idsWithin(`$${parents.length + 1}`)].join(' and ');
    const text = `select ${selected.join(', ')} from ${from} where ${where} order by rows.id limit $${parents.length + 2}`;

    return async (path, { after, limit, signal }) => {
        signal?.throwIfAborted();
        const isFurther = after > 0 && limit === BATCH;
        const { rows } = await (isFurther ? further : database).query<Given>(text, [...path, after, limit]);
        signal?.throwIfAborted();
        return rows.map(mend);
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
