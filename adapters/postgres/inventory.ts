import { type Clock, systemClock } from '../../lib/clock.ts';
import type { Host } from '../../lib/inventory/host.ts';
import type { Note, Service, Session, Vuln } from '../../lib/inventory/resources.ts';
import type { InventoryStore, InventoryWriter } from '../../lib/inventory/store.ts';
import type { Workspace } from '../../lib/inventory/workspace.ts';
import { collection } from './collection.ts';
import { ensureWorkspace, importHosts, WORKSPACE_COLUMNS } from './import-hosts.ts';
import type { PoolLike } from './pool.ts';
import { guarded } from './unavailable.ts';

export interface PostgresInventoryOptions {
    readonly pool: PoolLike;
    readonly clock?: Clock;
}

const TIMES = 'rows.created_at, rows.updated_at';
const BELOW_HOST = 'join scanwire.hosts on hosts.id = rows.host_id';

/** Workspaces, hosts and what belongs to hosts, in the tables of the schema `scanwire`. */
export function postgresInventory({ pool, clock = systemClock }: PostgresInventoryOptions): Required<InventoryStore> & InventoryWriter {
    const database = guarded(pool);

    return {
        workspaces: collection<Workspace>(database, { select: WORKSPACE_COLUMNS, from: 'scanwire.workspaces rows', parents: [] }),

        hosts: collection<Host>(database, {
            select: `rows.id, rows.workspace_id, ${TIMES}, host(rows.address) as address, rows.mac, rows.comm,
                coalesce(nullif(rows.name, ''), host(rows.address)) as name, rows.state, rows.os_name, rows.os_flavor, rows.os_sp,
                rows.os_lang, rows.arch, rows.purpose, rows.info, rows.comments, rows.scope, rows.virtual_host, rows.note_count,
                rows.vuln_count, rows.service_count, rows.host_detail_count, rows.exploit_attempt_count, rows.cred_count,
                rows.nexpose_data_asset_id, rows.history_count, rows.detected_arch`,
            from: 'scanwire.hosts rows',
            parents: ['rows.workspace_id'],
        }),

        services: collection<Service>(database, {
            select: `rows.id, rows.host_id, ${TIMES}, rows.port, rows.proto, rows.state, rows.name, rows.info`,
            from: `scanwire.services rows ${BELOW_HOST}`,
            parents: ['hosts.workspace_id', 'rows.host_id'],
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
        importHosts: (workspaceName, hosts) => importHosts({ pool: database, workspaceName, hosts, clock }),
    };
}
