import type { Migration } from '../migrate.ts';

/**
 * Workspaces, hosts and what belongs to hosts, in the shape of the open scan database that these fields come from, and API keys.
 *
 * A listing reads below one parent in ascending id, so each table has an index of its parent and id. Times keep milliseconds,
 * as a JavaScript date does. Triggers keep the counters of a host, so that they are right whoever stores what is counted.
 */
export const inventoryAndKeys: Migration = {
    id: '0001-inventory-and-keys',
    sql: `
create table scanwire.workspaces (
    id integer generated always as identity primary key,
    name text not null unique,
    boundary text,
    description text,
    owner_id integer,
    limit_to_network boolean not null default false,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now()
);

insert into scanwire.workspaces (name) values ('default');

create table scanwire.hosts (
    id integer generated always as identity primary key,
    workspace_id integer not null references scanwire.workspaces on delete cascade,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    address inet not null,
    mac text not null default '',
    comm text,
    name text not null default '',
    state text not null default 'alive' check (state in ('alive', 'down', 'unknown')),
    os_name text not null default '',
    os_flavor text not null default '',
    os_sp text not null default '',
    os_lang text,
    arch text,
    purpose text not null default '',
    info text,
    comments text,
    scope text,
    virtual_host text,
    note_count integer not null default 0,
    vuln_count integer not null default 0,
    service_count integer not null default 0,
    host_detail_count integer not null default 0,
    exploit_attempt_count integer not null default 0,
    cred_count integer not null default 0,
    nexpose_data_asset_id integer,
    history_count integer not null default 0,
    detected_arch text,
    unique (workspace_id, address)
);

create index on scanwire.hosts (workspace_id, id);

create table scanwire.services (
    id integer generated always as identity primary key,
    host_id integer not null references scanwire.hosts on delete cascade,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    port integer not null check (port between 1 and 65535),
    proto text not null check (proto in ('tcp', 'udp')),
    state text not null check (state in ('open', 'closed', 'filtered', 'unknown')),
    name text not null default '',
    info text,
    unique (host_id, port, proto)
);

create index on scanwire.services (host_id, id);

create table scanwire.notes (
    id integer generated always as identity primary key,
    workspace_id integer not null references scanwire.workspaces on delete cascade,
    host_id integer not null references scanwire.hosts on delete cascade,
    service_id integer references scanwire.services on delete cascade,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    ntype text,
    data jsonb not null default '{}',
    critical boolean,
    seen boolean
);

create index on scanwire.notes (host_id, id);
create index on scanwire.notes (service_id);
create index on scanwire.notes (workspace_id);

create table scanwire.sessions (
    id integer generated always as identity primary key,
    host_id integer not null references scanwire.hosts on delete cascade,
    stype text,
    via_exploit text,
    via_payload text,
    "desc" text,
    port integer check (port between 1 and 65535),
    platform text,
    datastore jsonb not null default '{}',
    opened_at timestamptz(3) not null,
    closed_at timestamptz(3),
    close_reason text,
    local_id integer,
    last_seen timestamptz(3),
    campaign_id integer
);

create index on scanwire.sessions (host_id, id);

create table scanwire.vulns (
    id integer generated always as identity primary key,
    host_id integer not null references scanwire.hosts on delete cascade,
    service_id integer not null references scanwire.services on delete cascade,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    name text not null check (char_length(name) <= 255),
    info text,
    exploited_at timestamptz(3),
    vuln_detail_count integer not null default 0,
    vuln_attempt_count integer not null default 0,
    nexpose_data_vuln_def_id integer
);

create index on scanwire.vulns (service_id, id);
create index on scanwire.vulns (host_id);

create function scanwire.count_stored() returns trigger language plpgsql as $$
begin
    execute format(
        'update scanwire.hosts set %1$I = %1$I + changed.count
         from (select host_id, count(*)::integer as count from stored group by host_id) as changed where hosts.id = changed.host_id',
        tg_argv[0]);
    return null;
end $$;

create function scanwire.count_removed() returns trigger language plpgsql as $$
begin
    execute format(
        'update scanwire.hosts set %1$I = %1$I - changed.count
         from (select host_id, count(*)::integer as count from removed group by host_id) as changed where hosts.id = changed.host_id',
        tg_argv[0]);
    return null;
end $$;

create trigger count_stored after insert on scanwire.services referencing new table as stored
    for each statement execute function scanwire.count_stored('service_count');
create trigger count_removed after delete on scanwire.services referencing old table as removed
    for each statement execute function scanwire.count_removed('service_count');
create trigger count_stored after insert on scanwire.notes referencing new table as stored
    for each statement execute function scanwire.count_stored('note_count');
create trigger count_removed after delete on scanwire.notes referencing old table as removed
    for each statement execute function scanwire.count_removed('note_count');
create trigger count_stored after insert on scanwire.vulns referencing new table as stored
    for each statement execute function scanwire.count_stored('vuln_count');
create trigger count_removed after delete on scanwire.vulns referencing old table as removed
    for each statement execute function scanwire.count_removed('vuln_count');

-- What an import has read so far: taken over in one short transaction when all is read. Not logged: it is never needed after a crash.
create unlogged table scanwire.import_batches (
    import_id uuid not null,
    seq integer not null,
    created_at timestamptz(3) not null default now(),
    hosts json not null,
    primary key (import_id, seq)
);

create table scanwire.api_keys (
    id uuid primary key,
    name text not null,
    digest text not null unique,
    start text not null,
    sealed text,
    created_at timestamptz(3) not null,
    last_used_at timestamptz(3),
    revoked_at timestamptz(3)
);
`,
};
