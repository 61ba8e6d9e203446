import type { Migration } from '../migrate.ts';

/**
 * Notes and vulnerabilities by imports, which carry the generation of their import as services do; those of generation 0 come from others,
 * and no import touches them. What an import is going to change in one that is shown waits in `staged` (`removed` for one that goes); their
 * host is in `staged_hosts` then, with `findings`. A vulnerability without a service is one of its host.
 */
export const findings: Migration = {
    id: '0051-findings',
    sql: `
alter table scanwire.import_batches add column findings json;

alter table scanwire.notes
    add column generation integer not null default 0,
    add column staged jsonb;
alter table scanwire.vulns
    alter column service_id drop not null,
    add column generation integer not null default 0,
    add column staged jsonb;

alter table scanwire.staged_hosts
    add column findings boolean not null default false,
    add column notes_added integer not null default 0,
    add column vulns_added integer not null default 0;

alter table scanwire.import_named
    add column kind text not null default 'service',
    drop constraint import_named_pkey,
    add primary key (workspace_id, host_id, kind, service_id);

create or replace function scanwire.count_stored() returns trigger language plpgsql as $$
begin
    execute format(
        'update scanwire.hosts set %1$I = %1$I + changed.count
         from (select host_id, count(*)::integer as count from stored where generation = 0 group by host_id) as changed
         where hosts.id = changed.host_id',
        tg_argv[0]);
    return null;
end $$;

create or replace function scanwire.count_removed() returns trigger language plpgsql as $$
begin
    execute format(
        'update scanwire.hosts set %1$I = %1$I - changed.count
         from (
            select removed.host_id, count(*)::integer as count
            from removed
            join scanwire.hosts on hosts.id = removed.host_id
            join scanwire.workspaces on workspaces.id = hosts.workspace_id
            where removed.generation <= workspaces.generation
            group by removed.host_id
         ) as changed
         where hosts.id = changed.host_id',
        tg_argv[0]);
    return null;
end $$;
`,
};
