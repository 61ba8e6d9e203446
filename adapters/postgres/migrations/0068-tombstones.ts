import type { Migration } from '../migrate.ts';

/** The tables below hosts whose deletions are told, each with what its rows are below besides their host. */
const BELOW_HOSTS = [
    ['services', 'null::integer'],
    ['notes', 'null::integer'],
    ['vulns', 'removed.service_id'],
] as const;

const buryBelowHosts = BELOW_HOSTS.map(
    ([table, service]) => `
create function scanwire.bury_${table}() returns trigger language plpgsql as $$
begin
    insert into scanwire.tombstones (kind, id, workspace_id, host_id, service_id, deleted_at)
    select '${table}', removed.id, hosts.workspace_id, hosts.id, ${service}, (select scanwire.now())
    from removed
    join scanwire.hosts on hosts.id = removed.host_id
    join scanwire.workspaces on workspaces.id = hosts.workspace_id
    where removed.generation <= workspaces.generation and hosts.generation <= workspaces.generation
    on conflict (kind, id, workspace_id) do update set deleted_at = excluded.deleted_at;
    return null;
end $$;

create trigger bury after delete on scanwire.${table} referencing old table as removed
    for each statement execute function scanwire.bury_${table}();
`,
).join('');

/**
 * What was deleted, and when, so that somebody who keeps a copy can be told. Triggers write it down, whoever deletes; of what was never
 * shown, because the import that stored it failed, nothing. What is below a host that is deleted, or a host of a workspace that is, goes
 * with it and has no row here. A host that is moved is deleted from where it was, and what was deleted below it goes with it.
 *
 * Workspaces are below `workspace_id` 0. There are no foreign keys: rows are removed in a while, as `deleted_at` says, and by nothing else.
 * What was deleted before `tombstone_keeping` says was not written down.
 */
export const tombstones: Migration = {
    id: '0068-tombstones',
    sql: `
create table scanwire.tombstones (
    kind text not null,
    id integer not null,
    workspace_id integer not null,
    host_id integer,
    service_id integer,
    deleted_at timestamptz(3) not null,
    primary key (kind, id, workspace_id)
);
create index on scanwire.tombstones (workspace_id, kind, deleted_at, id);
create index on scanwire.tombstones (host_id, kind, deleted_at, id) where host_id is not null;
create index on scanwire.tombstones (deleted_at);

create table scanwire.tombstone_keeping (
    single boolean primary key default true check (single),
    begun_at timestamptz(3) not null
);

create function scanwire.bury_workspaces() returns trigger language plpgsql as $$
begin
    insert into scanwire.tombstones (kind, id, workspace_id, deleted_at)
    select 'workspaces', removed.id, 0, (select scanwire.now()) from removed where removed.generation >= 0
    on conflict (kind, id, workspace_id) do update set deleted_at = excluded.deleted_at;
    return null;
end $$;

create trigger bury after delete on scanwire.workspaces referencing old table as removed
    for each statement execute function scanwire.bury_workspaces();

create function scanwire.bury_hosts() returns trigger language plpgsql as $$
begin
    insert into scanwire.tombstones (kind, id, workspace_id, deleted_at)
    select 'hosts', removed.id, removed.workspace_id, (select scanwire.now())
    from removed
    join scanwire.workspaces on workspaces.id = removed.workspace_id
    where removed.generation <= workspaces.generation
    on conflict (kind, id, workspace_id) do update set deleted_at = excluded.deleted_at;
    return null;
end $$;

create trigger bury after delete on scanwire.hosts referencing old table as removed
    for each statement execute function scanwire.bury_hosts();
${buryBelowHosts}
create function scanwire.bury_moved_host() returns trigger language plpgsql as $$
begin
    insert into scanwire.tombstones (kind, id, workspace_id, deleted_at)
    select 'hosts', old.id, old.workspace_id, scanwire.now()
    from scanwire.workspaces where workspaces.id = old.workspace_id and old.generation <= workspaces.generation
    on conflict (kind, id, workspace_id) do update set deleted_at = excluded.deleted_at;
    delete from scanwire.tombstones where kind = 'hosts' and id = new.id and workspace_id = new.workspace_id;
    update scanwire.tombstones set workspace_id = new.workspace_id, deleted_at = scanwire.now() where host_id = new.id;
    return null;
end $$;

create trigger bury_moved after update of workspace_id on scanwire.hosts
    for each row when (old.workspace_id <> new.workspace_id) execute function scanwire.bury_moved_host();

-- Once the triggers are there: whoever deleted meanwhile was waited for.
insert into scanwire.tombstone_keeping (begun_at) values (scanwire.now());
`,
};
