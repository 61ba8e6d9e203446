import Joi from 'joi';
import { ScanwireError } from '../../lib/errors.ts';
import { isRowId, MAX_ID } from '../../lib/inventory/fields.ts';
import { HOST_FIELDS } from '../../lib/inventory/host.ts';
import { wholeRows } from '../../lib/inventory/read-only-inventory.ts';
import { SERVICE_FIELDS, VULN_FIELDS } from '../../lib/inventory/resources.ts';
import { noteData } from '../../lib/inventory/scan-files/metasploit-columns.ts';
import { FILTERS, type FilterName, SEARCHED } from '../../lib/inventory/selection.ts';
import type { Collection, InventoryStore } from '../../lib/inventory/store.ts';
import { optionalPackage } from '../../lib/optional-packages.ts';
import { checked } from '../../lib/schema-validation.ts';
import { IMPATIENT, patiently } from '../postgres/database.ts';
import { type CollectionSource, collection, type GivenRow } from '../postgres/inventory/collection.ts';
import { copying } from '../postgres/inventory/copy-out.ts';
import { type Readers, readersOf } from '../postgres/inventory/readers.ts';
import { rowText } from '../postgres/inventory/row-text.ts';
import { fromWithin, idsWithin, textBatches } from '../postgres/inventory/text-batches.ts';
import { assertPrepared, type HostPool, isHostPool, ownPool } from '../postgres/own-pool.ts';
import {
    type Columns,
    type Computed,
    columnsOf,
    expression,
    type FieldSource,
    hostColumns,
    outgoing,
    RARELY_COUNTED,
    readColumns,
    SERVICE_COLUMNS,
    safeTexts,
    TABLES,
    type WritableFields,
} from './columns.ts';

/** Where rows are, as for their reading, and what they are written of. */
interface WrittenSource extends FieldSource {
    readonly from: string;
    readonly parents: readonly string[];
}

/** That a session writes nothing, and ends what takes too long. */
const IS_PREPARED = `current_setting('default_transaction_read_only') = 'on'
    and current_setting('statement_timeout')::interval = interval '${IMPATIENT.statement} ms'`;

/** To plan a statement that writes hosts takes as long as it writes 500 of them. Those of other rows are short. */
const HOSTS_AT_ONCE = 4_000;

/** Rows as text that the database makes, of which nothing is parsed and written again here. Rows that it cannot write so are read. */
function texts<Row extends { readonly id: number }>(
    readers: Readers,
    columns: Columns,
    { table, from, parents, computed = {}, fields }: WrittenSource,
    { select }: Pick<Collection<Row>, 'select'>,
): NonNullable<Collection<Row>['listText']> {
    // Times are in UTC without a zone there: to give them one, so that it is taken away again, takes as long as to write them.
    const utc = (value: string): string => value;
    const known = { utc, safe: safeTexts(table, columns), ...(table === 'hosts' && { zeros: RARELY_COUNTED }) };
    const written = rowText(fields, outgoing(columns, { table, computed, fields }, utc), known);
    // An id that the API has no form for is refused where the row is read.
    const page = (
        after: string,
        until?: string,
        within?: (name: string) => string,
    ): string => `select least(rows.id, ${MAX_ID})::integer as id, case when rows.id <= ${MAX_ID} then ${written} end as text
        from ${fromWithin(from, within)} where ${[...below(parents), idsWithin(after, until)].join(' and ')} order by rows.id`;
    const read = select as NonNullable<typeof select>;
    const source = {
        parents: parents.length,
        page,
        columns: columnsOf(table, columns),
        ...(table === 'hosts' && { atOnce: HOSTS_AT_ONCE }),
    };
    const pages = textBatches<Row>(readers, source, read);
    return (path, options) => (path.every(isRowId) ? pages(path, options) : read(path, {}, options));
}

/** Below the ids of the path, the first parameters. */
function below(parents: readonly string[]): readonly string[] {
    return parents.map((column, index) => `${column} = $${index + 1}`);
}

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
 * @throws ScanwireError `MISCONFIGURED` that names the tables and columns that are missing or may not be read, or says that the package `pg` is too
 *     old to make sessions read-only; `UNAVAILABLE`.
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
        await assertPrepared(database, 'the scan database', IS_PREPARED);
        const columns = await readColumns(database);
        const readers = readersOf(database, patiently(own, IMPATIENT, { through: copying }));
        return { inventory: inventoryOf(readers, columns), close: () => own.end() };
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

/** How the rows of a resource are found. `workspace` stands for the workspace of the path. */
interface Source extends Pick<CollectionSource, 'table' | 'from' | 'parents' | 'filters' | 'searched' | 'byHost'> {
    readonly computed?: Computed;
    /** Mends what SQL cannot. */
    readonly mend?: (row: GivenRow) => GivenRow;
    /** The fields that filters look into. */
    readonly fields: WritableFields;
}

const BELOW_HOST = 'join hosts on hosts.id = rows.host_id join workspaces workspace on workspace.id = hosts.workspace_id';
const BELOW_HOST_OR_NONE = `left join hosts on hosts.id = rows.host_id
    join workspaces workspace on workspace.id = coalesce(hosts.workspace_id, rows.workspace_id)`;
const BELOW_SERVICE = 'join services on services.id = rows.service_id and services.host_id = hosts.id';

const WORKSPACES: Source = {
    table: 'workspaces',
    from: 'workspaces rows',
    parents: [],
    filters: FILTERS.workspaces,
    fields: { name: 'text', updated_at: 'time' },
    searched: ['name'],
};
const SERVICES = {
    ...belowHost('services', FILTERS.services, SERVICE_FIELDS),
    computed: SERVICE_COLUMNS,
    searched: ['name', 'info'],
} satisfies Source;
const NOTES = {
    ...belowHost('notes', FILTERS.notes, { updated_at: 'time' }),
    computed: { data: 'rows.data::text' },
    mend: documented('data'),
} satisfies Source;
const SESSIONS = {
    ...belowHost('sessions', FILTERS.sessions, {}),
    computed: { datastore: 'rows.datastore::text' },
    mend: documented('datastore'),
} satisfies Source;
const VULNS = { ...belowHost('vulns', FILTERS.vulns, VULN_FIELDS), searched: ['name', 'info'] } satisfies Source;

function belowHost(table: string, filters: readonly FilterName[], fields: WritableFields): Source {
    return { table, from: `${table} rows ${BELOW_HOST}`, parents: ['hosts.workspace_id', 'rows.host_id'], filters, fields };
}

/** The same rows below all hosts of a workspace. */
function ofWorkspace(source: Source, filters: readonly FilterName[]): Source {
    return { ...source, parents: source.parents.slice(0, 1), byHost: true, filters };
}

function hostsOf(columns: Columns): Source {
    return {
        table: 'hosts',
        from: 'hosts rows join workspaces workspace on workspace.id = rows.workspace_id',
        parents: ['rows.workspace_id'],
        computed: hostColumns(columns),
        // When an import has seen a host nobody knows here.
        filters: knownFilters('hosts', columns).filter((name) => name !== 'last_seen_since'),
        fields: HOST_FIELDS,
        searched: SEARCHED,
    };
}

/** Addresses that are text have no blocks. */
function knownFilters(name: keyof typeof FILTERS, columns: Columns): readonly FilterName[] {
    return FILTERS[name].filter((filter) => filter !== 'address' || columns.get('hosts.address') === 'inet');
}

function inventoryOf(readers: Readers, columns: Columns): Required<InventoryStore> {
    const read = <Row extends { readonly id: number }>(name: keyof InventoryStore, source: Source) =>
        collection<Row>(readers, readSource(columns, name, source));
    const written = <Row extends { readonly id: number }>(name: keyof InventoryStore, source: Source, fields = source.fields) => {
        const rows = read<Row>(name, source);
        return { ...rows, listText: texts(readers, columns, { ...source, fields }, rows) };
    };
    const vulns = { ...VULNS, from: `${VULNS.from} ${BELOW_SERVICE}`, parents: [...VULNS.parents, 'rows.service_id'] };
    return {
        workspaces: read('workspaces', WORKSPACES),
        hosts: written('hosts', hostsOf(columns)),
        services: written('services', SERVICES),
        notes: read('notes', NOTES),
        sessions: read('sessions', SESSIONS),
        vulns: written('vulns', vulns),
        hostVulns: read('hostVulns', VULNS),
        workspaceServices: written('workspaceServices', ofWorkspace(SERVICES, knownFilters('workspaceServices', columns))),
        // A note of no host is its workspace's.
        workspaceNotes: read('workspaceNotes', {
            ...ofWorkspace(NOTES, knownFilters('workspaceNotes', columns)),
            from: `notes rows ${BELOW_HOST_OR_NONE}`,
            parents: ['workspace.id'],
        }),
        workspaceSessions: read('workspaceSessions', ofWorkspace(SESSIONS, FILTERS.sessions)),
        workspaceVulns: written('workspaceVulns', ofWorkspace(VULNS, knownFilters('workspaceVulns', columns)), {
            ...VULN_FIELDS,
            service_id: 'nullableId',
        }),
    };
}

/** What a row holds that the API's schema does not know is the scan database's; it is shown, not refused. */
function readSource(columns: Columns, name: keyof InventoryStore, { mend = (row) => row, ...source }: Source): CollectionSource {
    const { table, computed = {} } = source;
    const { always = [], sometimes = [] } = TABLES[table] ?? {};
    const selected = [...always, ...sometimes]
        .filter((column) => columns.has(`${table}.${column}`) || column in computed)
        .map((column) => `${computed[column] ?? expression(table, column, columns)} as "${column}"`);
    const made = wholeRows(name);
    const value = outgoing(columns, source);
    return {
        ...source,
        select: selected.join(', '),
        // Finer than milliseconds a row would be behind itself.
        column: (field) => (field === 'updated_at' ? `date_trunc('milliseconds', ${value(field)})` : value(field)),
        whole: (rows, path) => made(rows.map(mend), path) as readonly GivenRow[],
    };
}

/** Reads the text of the column as {@link noteData} does. */
function documented(column: 'data' | 'datastore'): (row: GivenRow) => GivenRow {
    return (row) => ({ ...row, [column]: noteData(row[column] as string | null) });
}
