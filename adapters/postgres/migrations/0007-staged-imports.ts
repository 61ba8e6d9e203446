import type { Migration } from '../migrate.ts';

/**
 * Imports in many short transactions, shown by one.
 *
 * New hosts and services carry the generation that their import is going to give its workspace, and are not shown before. What changes in
 * rows that are shown waits in `staged_hosts` and `staged_services`; readers lay it over those rows from the moment that the import is
 * shown (`staged_shown`) until it is moved into them. A workspace of a negative generation is not shown itself.
 *
 * `import_id` and `import_until` are the lease of the import that is at work. The ids of its hosts are above `hosts_until`, so that a
 * listing need not walk through them, and what a process that died has left is found.
 *
 * Services of generation 0 come from others, and triggers count them; an import counts its own.
 */
export const stagedImports: Migration = {
    id: '0007-staged-imports',
    sql: `
alter table scanwire.workspaces
    add column generation integer not null default 0,
    add column staged_shown boolean not null default false,
    add column import_id uuid,
    add column import_until timestamptz(3),
    add column hosts_until integer;
alter table scanwire.hosts add column generation integer not null default 0;
alter table scanwire.services add column generation integer not null default 0;

create table scanwire.staged_hosts (
    workspace_id integer not null references scanwire.workspaces on delete cascade,
    host_id integer not null,
    updated_at timestamptz(3) not null,
    fields jsonb not null,
    services_added integer not null default 0,
    primary key (workspace_id, host_id),
    check (fields ->> 'state' in ('alive', 'down', 'unknown')),
    check ((fields ->> 'nexpose_data_asset_id')::integer is not null or fields ->> 'nexpose_data_asset_id' is null)
);

create table scanwire.staged_services (
    host_id integer not null,
    service_id integer not null,
    updated_at timestamptz(3) not null,
    state text not null check (state in ('open', 'closed', 'filtered', 'unknown')),
    name text not null,
    info text,
    primary key (host_id, service_id)
);

create function scanwire.count_services_stored() returns trigger language plpgsql as $$
begin
    update scanwire.hosts set service_count = service_count + changed.count
    from (select host_id, count(*)::integer as count from stored where generation = 0 group by host_id) as changed
    where hosts.id = changed.host_id;
    return null;
end $$;

create function scanwire.count_services_removed() returns trigger language plpgsql as $$
begin
    update scanwire.hosts set service_count = service_count - changed.count
    from (
        select removed.host_id, count(*)::integer as count
        from removed
        join scanwire.hosts on hosts.id = removed.host_id
        join scanwire.workspaces on workspaces.id = hosts.workspace_id
        where removed.generation <= workspaces.generation
        group by removed.host_id
    ) as changed
    where hosts.id = changed.host_id;
    return null;
end $$;

drop trigger count_stored on scanwire.services;
drop trigger count_removed on scanwire.services;
create trigger count_stored after insert on scanwire.services referencing new table as stored
    for each statement execute function scanwire.count_services_stored();
create trigger count_removed after delete on scanwire.services referencing old table as removed
    for each statement execute function scanwire.count_services_removed();
`,
};
