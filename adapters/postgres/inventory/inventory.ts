import { MAX_ID } from '../../../lib/inventory/fields.ts';
import { HOST_FIELDS, type Host } from '../../../lib/inventory/host.ts';
import {
    NOTE_FIELDS,
    type Note,
    SERVICE_FIELDS,
    type Service,
    type Session,
    VULN_FIELDS,
    type Vuln,
    type Workspace,
    type WorkspaceNote,
    type WorkspaceVuln,
} from '../../../lib/inventory/resources.ts';
import { FILTERS, SEARCHED } from '../../../lib/inventory/selection.ts';
import type { InventoryStore, InventoryWriter } from '../../../lib/inventory/store.ts';
import { readingFrom } from '../../../lib/store-source.ts';
import {
    assertStoreOptions,
    IMPATIENT,
    IMPATIENT_ON_SERVER,
    type PostgresStoresOptions,
    type PreparingOptions,
    patiently,
} from '../database.ts';
import { importHosts } from '../imports/import-hosts.ts';
import { lastSeen } from '../imports/sightings.ts';
import { laidOver } from '../imports/stage-findings.ts';
import { overlaid } from '../imports/stage-hosts.ts';
import { storeClock } from '../store-clock.ts';
import { type CollectionSource, collection } from './collection.ts';
import { copying } from './copy-out.ts';
import { moveHosts } from './move-hosts.ts';
import { readersOf } from './readers.ts';
import { expireHosts, removeHosts, removeWorkspace } from './remove-hosts.ts';
import { renameWorkspace } from './rename-workspace.ts';
import { rowText } from './row-text.ts';
import { ensureWorkspace, updateWorkspace, WORKSPACE_COLUMNS } from './workspaces.ts';

/** The workspace of the path. */
const WORKSPACE = 'from scanwire.workspaces where id = $1';
/** What an import that is at work stores has a generation that its workspace has not reached. */
const SHOWN = `rows.generation <= (select generation ${WORKSPACE})`;
/** Without this a listing would walk through all of that. */
const BEFORE_IMPORT = `rows.id <= coalesce((select hosts_until ${WORKSPACE}), ${MAX_ID})`;

/** What an import that is shown changes in the rows and has not moved into them yet. Looked up row by row (`offset 0`): mostly there is nothing. */
function joinStaged(table: string, condition: string): string {
    return `left join lateral (
        select * from scanwire.${table} where (select staged_shown ${WORKSPACE}) and ${condition} offset 0
    ) staged on true`;
}

/** Rows with nothing laid over them, most of all rows, are not going to be removed. */
const KEPT = 'staged.removed is not true';
/** The same of what is below a host. Looked up row by row too: what looks through a range of rows would first read all hosts that are going to be removed. */
const HOST_KEPT = `case when (select staged_shown ${WORKSPACE}) then not exists (
        select from scanwire.staged_hosts where workspace_id = $1 and host_id = rows.host_id and removed offset 0
    ) else true end`;
/** The same of what may be below a service. */
const SERVICE_KEPT = `${HOST_KEPT} and case when (select staged_shown ${WORKSPACE}) then not exists (
        select from scanwire.staged_services where host_id = rows.host_id and service_id = rows.service_id and removed
    ) else true end`;

const GIVEN = overlaid('staged.fields', 'rows');
/** Those of a host whose value is not the column as it is, with nothing laid over it. */
const OWN_HOST_COLUMNS: Readonly<Record<string, string>> = {
    address: 'host(rows.address)',
    name: `coalesce(nullif(rows.name, ''), host(rows.address))`,
};
/** The same with what is laid over it. */
const COMPUTED: Readonly<Record<string, string>> = {
    address: 'host(rows.address)',
    name: `coalesce(nullif(${GIVEN.get('name')}, ''), host(rows.address))`,
    updated_at: 'coalesce(staged.updated_at, rows.updated_at)',
    service_count: 'rows.service_count + coalesce(staged.services_added - staged.services_removed, 0)',
    note_count: 'rows.note_count + coalesce(staged.notes_added - staged.notes_removed, 0)',
    vuln_count: 'rows.vuln_count + coalesce(staged.vulns_added - staged.vulns_removed, 0)',
    last_seen: lastSeen('rows', `(select generation ${WORKSPACE})`),
};
/** Kept by a trigger; a row that was not written since there is one has none. */
const HOST_TEXT = `coalesce(rows.document, ${rowText(HOST_FIELDS, (field) => OWN_HOST_COLUMNS[field] ?? `rows.${field}`)})`;
const hostColumn = (field: string): string => COMPUTED[field] ?? GIVEN.get(field) ?? `rows.${field}`;
const HOST_COLUMNS = Object.keys(HOST_FIELDS)
    .map((field) => `${hostColumn(field)} as ${field}`)
    .join(', ');
/** What an import that is shown lays over hosts that stay, by itself: few rows, or none. */
const STAGED_HOSTS = `(
        select * from scanwire.staged_hosts where (select staged_shown ${WORKSPACE}) and workspace_id = $1 and not removed
    ) staged join scanwire.hosts rows on rows.id = staged.host_id`;
const SERVICE_OVERLAID: Readonly<Record<string, string>> = {
    updated_at: 'coalesce(staged.updated_at, rows.updated_at)',
    state: 'coalesce(staged.state, rows.state)',
    name: 'coalesce(staged.name, rows.name)',
    info: 'case when staged.service_id is null then rows.info else staged.info end',
};
const serviceColumn = (field: string): string => SERVICE_OVERLAID[field] ?? `rows.${field}`;
const SERVICE_COLUMNS = ['id', 'host_id', 'created_at', 'updated_at', 'port', 'proto', 'state', 'name', 'info']
    .map((field) => `${serviceColumn(field)} as ${field}`)
    .join(', ');
const BELOW_HOST = 'join scanwire.hosts on hosts.id = rows.host_id';
const BELOW_SERVICE = 'join scanwire.services on services.id = rows.service_id and services.host_id = hosts.id';
const HOST_PARENTS = ['hosts.workspace_id', 'rows.host_id'];

const SERVICES: CollectionSource = {
    buried: 'services',
    select: SERVICE_COLUMNS,
    table: 'scanwire.services',
    from: `scanwire.services rows ${BELOW_HOST}
        ${joinStaged('staged_services', 'host_id = rows.host_id and service_id = rows.id')}`,
    parents: HOST_PARENTS,
    shown: SHOWN,
    kept: `${HOST_KEPT} and ${KEPT}`,
    filters: FILTERS.services,
    searched: ['name', 'info'],
    column: serviceColumn,
    text: { row: rowText(SERVICE_FIELDS, (field) => `rows.${field}`), from: `scanwire.services rows ${BELOW_HOST}` },
};

/** What an import that is shown is going to change in a note or a vulnerability; null as long as it is not shown. */
const STAGED_FINDING = `case when (select staged_shown ${WORKSPACE}) then rows.staged end`;
const FINDING_KEPT = `${SERVICE_KEPT} and (${STAGED_FINDING}) -> 'removed' is null`;

const noteColumn = (field: string): string => laidOver('notes', field, `(${STAGED_FINDING})`);
const NOTES: CollectionSource = {
    buried: 'notes',
    select: Object.keys(NOTE_FIELDS)
        .map((field) => `${noteColumn(field)} as ${field}`)
        .join(', '),
    table: 'scanwire.notes',
    from: `scanwire.notes rows ${BELOW_HOST}`,
    parents: HOST_PARENTS,
    shown: SHOWN,
    kept: FINDING_KEPT,
    column: noteColumn,
    filters: FILTERS.notes,
};

const SESSIONS: CollectionSource = {
    select: `rows.id, rows.host_id, rows.stype, rows.via_exploit, rows.via_payload, rows."desc", rows.port, rows.platform,
        rows.datastore, rows.opened_at, rows.closed_at, rows.close_reason, rows.local_id, rows.last_seen, rows.campaign_id`,
    table: 'scanwire.sessions',
    from: `scanwire.sessions rows ${BELOW_HOST}`,
    parents: HOST_PARENTS,
    kept: HOST_KEPT,
    filters: FILTERS.sessions,
};

const vulnColumn = (field: string): string => laidOver('vulns', field, `(${STAGED_FINDING})`);
const VULNS = {
    buried: 'vulns',
    select: Object.keys(VULN_FIELDS)
        .map((field) => `${vulnColumn(field)} as ${field}`)
        .join(', '),
    table: 'scanwire.vulns',
    from: `scanwire.vulns rows ${BELOW_HOST}`,
    parents: HOST_PARENTS,
    shown: SHOWN,
    kept: FINDING_KEPT,
    column: vulnColumn,
    filters: FILTERS.vulns,
    searched: ['name', 'info'],
    text: {
        row: rowText({ ...VULN_FIELDS, service_id: 'nullableId' }, (field) => `rows.${field}`),
        from: `scanwire.vulns rows ${BELOW_HOST}`,
    },
} satisfies CollectionSource;

/** The same rows below all hosts of a workspace. */
function ofWorkspace(source: CollectionSource, filters: CollectionSource['filters']): CollectionSource {
    return { ...source, parents: source.parents.slice(0, 1), byHost: true, hasBlocks: true, filters };
}

/** What {@link postgresInventory} is made of. */
export interface PostgresInventoryOptions extends PostgresStoresOptions, PreparingOptions {}

/** Workspaces, hosts and what belongs to hosts, in the tables of the schema `scanwire`. */
export function postgresInventory(options: PostgresInventoryOptions): Required<InventoryStore & InventoryWriter> {
    assertStoreOptions(options, 'postgresInventory');
    const { pool, prepare = true } = options;
    const clock = storeClock(options.clock);
    const database = patiently(pool, IMPATIENT, { prepare });
    const searching = patiently(pool, IMPATIENT_ON_SERVER, { prepare });
    const readers = readersOf(database, patiently(pool, IMPATIENT, { through: copying }), searching, { inRanges: pool.embedded === true });

    return readingFrom(pool, {
        workspaces: collection<Workspace>(readers, {
            buried: 'workspaces',
            select: WORKSPACE_COLUMNS,
            table: 'scanwire.workspaces',
            from: 'scanwire.workspaces rows',
            parents: [],
            shown: 'rows.generation >= 0',
            filters: FILTERS.workspaces,
            searched: ['name'],
        }),

        hosts: collection<Host>(readers, {
            buried: 'hosts',
            select: HOST_COLUMNS,
            table: 'scanwire.hosts',
            from: `scanwire.hosts rows ${joinStaged('staged_hosts', 'workspace_id = $1 and host_id = rows.id')}`,
            parents: ['rows.workspace_id'],
            shown: SHOWN,
            kept: KEPT,
            listed: BEFORE_IMPORT,
            filters: FILTERS.hosts,
            extras: ['last_seen'],
            searched: SEARCHED,
            column: hostColumn,
            staged: STAGED_HOSTS,
            hasBlocks: true,
            text: { row: HOST_TEXT, from: 'scanwire.hosts rows', isKept: true },
        }),

        services: collection<Service>(readers, SERVICES),
        notes: collection<Note>(readers, NOTES),
        sessions: collection<Session>(readers, SESSIONS),
        vulns: collection<Vuln>(readers, {
            ...VULNS,
            from: `${VULNS.from} ${BELOW_SERVICE}`,
            text: { ...VULNS.text, from: `${VULNS.text.from} ${BELOW_SERVICE}` },
            parents: [...VULNS.parents, 'rows.service_id'],
        }),
        hostVulns: collection<WorkspaceVuln>(readers, VULNS),
        workspaceServices: collection<Service>(readers, ofWorkspace(SERVICES, FILTERS.workspaceServices)),
        workspaceNotes: collection<WorkspaceNote>(readers, ofWorkspace(NOTES, FILTERS.workspaceNotes)),
        workspaceSessions: collection<Session>(readers, ofWorkspace(SESSIONS, FILTERS.sessions)),
        workspaceVulns: collection<WorkspaceVuln>(readers, ofWorkspace(VULNS, FILTERS.workspaceVulns)),

        ensureWorkspace: async (name) => ensureWorkspace(database, name, await clock(database)),
        expireHosts: (workspaceName, options) => expireHosts(pool, workspaceName, { ...options, clock }),
        removeHosts: (workspaceName, options) => removeHosts(pool, workspaceName, { ...options, clock }),
        removeWorkspace: (name) => removeWorkspace(pool, name, clock),
        moveHosts: (ids, to) => moveHosts(pool, ids, to, clock),
        updateWorkspace: async (name, changes) => updateWorkspace(database, name, changes, await clock(database)),
        renameWorkspace: (name, to) => renameWorkspace(pool, name, to, clock),
        replaces: true,
        keepsFindings: true,
        dryRuns: true,
        keepsBoundaries: true,
        remembersImports: true,
        importHosts: (workspaceName, hosts, options) => importHosts(pool, workspaceName, hosts, { ...options, clock, prepare }),
    });
}
