import type { Migration } from '../migrate.ts';

/**
 * Imports that replace all of a workspace. Which of the hosts and services that are shown such an import names is kept in `import_named`
 * (a host as `service_id` 0). What it does not name is marked beside what changes, so that it vanishes at the moment in which the import is
 * shown, and is removed after that. The counts of a host are without what is marked below it.
 */
export const replace: Migration = {
    id: '0044-replace',
    sql: `
create table scanwire.import_named (
    workspace_id integer not null references scanwire.workspaces on delete cascade,
    host_id integer not null,
    service_id integer not null,
    primary key (workspace_id, host_id, service_id)
);

alter table scanwire.staged_hosts
    add column removed boolean not null default false,
    add column services_removed integer not null default 0,
    add column notes_removed integer not null default 0,
    add column vulns_removed integer not null default 0;
alter table scanwire.staged_services add column removed boolean not null default false;
`,
};
