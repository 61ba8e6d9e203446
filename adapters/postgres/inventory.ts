import { systemClock } from '../../lib/clock.ts';
import { HOST_FIELDS, type Host } from '../../lib/inventory/host.ts';
import type { Note, Service, Session, Vuln, Workspace } from '../../lib/inventory/resources.ts';
import type { Collection, InventoryStore, InventoryWriter } from '../../lib/inventory/store.ts';
import type { Executor } from '../../lib/transaction.ts';
import { assertPoolIn, IMPATIENT, type PostgresStoresOptions, patiently } from './database.ts';
import { importHosts } from './import-hosts.ts';
import { LARGEST_ID, overlaid } from './staged-import.ts';
import { ensureWorkspace, WORKSPACE_COLUMNS } from './workspaces.ts';

const TIMES = 'rows.created_at, rows.updated_at';
/** The workspace of the path. */
const WORKSPACE = 'from scanwire.workspaces where id = $1';
/** What an import that is at work stores has a generation that its workspace has not reached. */
const SHOWN = `rows.generation <= (select generation ${WORKSPACE})`;
/** Without this a listing would walk through all of that. */
const BEFORE_IMPORT = `rows.id <= coalesce((select hosts_until ${WORKSPACE}), ${LARGEST_ID})`;

/** What an import that is shown changes in the rows and has not moved into them yet. Looked up row by row (`offset 0`): mostly there is nothing. */
function joinStaged(table: string, condition: string): string {
    return `left join lateral (
        select * from scanwire.${table} where (select staged_shown ${WORKSPACE}) and ${condition} offset 0
    ) staged on true`;
}

const GIVEN = overlaid('staged.fields', 'rows');
/** Those of a host whose value is not the column as it is. */
const COMPUTED: Readonly<Record<string, string>> = {
    address: 'host(rows.address)',
    name: `coalesce(nullif(${GIVEN.get('name')}, ''), host(rows.address))`,
    updated_at: 'coalesce(staged.updated_at, rows.updated_at)',
    service_count: 'rows.service_count + coalesce(staged.services_added, 0)',
};
const HOST_COLUMNS = Object.keys(HOST_FIELDS)
    .map((field) => `${COMPUTED[field] ?? GIVEN.get(field) ?? `rows.${field}`} as ${field}`)
    .join(', ');
const SERVICE_COLUMNS = `rows.id, rows.host_id, rows.created_at, coalesce(staged.updated_at, rows.updated_at) as updated_at,
    rows.port, rows.proto, coalesce(staged.state, rows.state) as state, coalesce(staged.name, rows.name) as name,
    case when staged.service_id is null then rows.info else staged.info end as info`;
const BELOW_HOST = 'join scanwire.hosts on hosts.id = rows.host_id';

/** Workspaces, hosts and what belongs to hosts, in the tables of the schema `scanwire`. */
export function postgresInventory(options: PostgresStoresOptions): Required<InventoryStore> & InventoryWriter {
    assertPoolIn(options, 'postgresInventory');
    const { pool, clock = systemClock } = options;
    const database = patiently(pool, IMPATIENT);

    return {
        workspaces: collection<Workspace>(database, {
            select: WORKSPACE_COLUMNS,
            from: 'scanwire.workspaces rows',
            parents: [],
            shown: 'rows.generation >= 0',
        }),

        hosts: collection<Host>(database, {
            select: HOST_COLUMNS,
            from: `scanwire.hosts rows ${joinStaged('staged_hosts', 'workspace_id = $1 and host_id = rows.id')}`,
            parents: ['rows.workspace_id'],
            shown: SHOWN,
            listed: BEFORE_IMPORT,
        }),

        services: collection<Service>(database, {
            select: SERVICE_COLUMNS,
            from: `scanwire.services rows ${BELOW_HOST}
                ${joinStaged('staged_services', 'host_id = rows.host_id and service_id = rows.id')}`,
            parents: ['hosts.workspace_id', 'rows.host_id'],
            shown: SHOWN,
        }),

        notes: collection<Note>(database, {
            select: `rows.id, rows.workspace_id, rows.host_id, rows.service_id, ${TIMES}, rows.ntype, rows.data, rows.critical, rows.seen`,
            from: `scanwire.notes rows ${BELOW_HOST}`,
            parents: ['hosts.workspace_id', 'rows.host_id'],
        }),

        sessions: collection<Session>(database, {
            select: `rows.id, rows.host_id, rows.stype, rows.via_exploit, rows.via_payload, rows."desc", rows.port, rows.platform,
                rows.datastore, rows.opened_at, rows.closed_at, rows.close_reason, rows.local_id, rows.last_seen, rows.campaign_id`,
            from: `scanwire.sessions rows ${BELOW_HOST}`,
            parents: ['hosts.workspace_id', 'rows.host_id'],
        }),

        vulns: collection<Vuln>(database, {
            select: `rows.id, rows.host_id, rows.service_id, ${TIMES}, rows.name, rows.info, rows.exploited_at,
                rows.vuln_detail_count, rows.vuln_attempt_count, rows.nexpose_data_vuln_def_id`,
            from: `scanwire.vulns rows ${BELOW_HOST} join scanwire.services on services.id = rows.service_id and services.host_id = hosts.id`,
            parents: ['hosts.workspace_id', 'rows.host_id', 'rows.service_id'],
        }),

        ensureWorkspace: (name) => ensureWorkspace(database, name, clock()),
        importHosts: (workspaceName, hosts, options) => importHosts(pool, workspaceName, hosts, { ...options, clock }),
    };
}

/** How the rows of a resource are found. `rows` stands for the resource's own table in these texts. */
interface CollectionSource {
    readonly select: string;
    /** From `scanwire.<table> rows`, joined with what its ancestors are checked by. */
    readonly from: string;
    /** Columns that hold the ids of the path, from the outside in. */
    readonly parents: readonly string[];
    /** What a row must fulfil beyond its parents, so that it is there for a reader. */
    readonly shown?: string;
    /** What is true of such rows anyway, and helps to list them. */
    readonly listed?: string;
}

/** Large enough that a round trip does not count, small enough that a batch does not either (see `docs/postgres.md`). */
const BATCH = 250;

/**
 * Rows read in batches, each a statement of its own that goes on behind the last id. So a slow reader holds neither a connection
 * nor a snapshot: a row is seen at most once, and one that is stored behind the reader while it reads is missed.
 */
function collection<Row extends { readonly id: number }>(
    database: Executor,
    { select, from, parents, shown = 'true', listed = 'true' }: CollectionSource,
): Collection<Row> {
    const below = [...parents.map((column, index) => `${column} = $${index + 1}`), shown];
    const last = `$${parents.length + 1}`;
    const statement = (condition: string): string =>
        `select ${select} from ${from} where ${[...below, condition].join(' and ')} order by rows.id limit ${BATCH}`;
    const batch = statement(`rows.id > ${last} and ${listed}`);
    const one = statement(`rows.id = ${last}`);

    return {
        async *list(path, { signal } = {}) {
            for (let after = 0, full = path.every(isId); full; ) {
                signal?.throwIfAborted();
                const { rows } = await database.query<Row>(batch, [...path, after]);
                signal?.throwIfAborted();
                if (rows.length > 0) {
                    yield rows;
                }

                after = rows.at(-1)?.id ?? LARGEST_ID;
                full = rows.length === BATCH;
            }
        },

        async get(path, id) {
            if (![...path, id].every(isId)) {
                return null;
            }

            const { rows } = await database.query<Row>(one, [...path, id]);
            return rows[0] ?? null;
        },
    };
}

/** What no column can hold is the id of nothing. */
function isId(id: number): boolean {
    return Number.isInteger(id) && id >= 1 && id <= LARGEST_ID;
}
