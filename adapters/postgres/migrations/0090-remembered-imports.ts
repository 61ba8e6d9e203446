import type { Migration } from '../migrate.ts';

/** Whose rows an import compares with what it names. */
const TABLES = ['hosts', 'services', 'notes', 'vulns'];

/**
 * Imports after which their workspace is as it was, so that the same again need not be looked at. The row of one that is not shown yet has no
 * `counts`; where its workspace has another boundary by now, or `foreign_writes` another value, it counts no more. Of the hosts that it has named
 * and that are not down there are some in each row of `remembered_hosts`.
 *
 * What writes in turn with imports sets `scanwire.own_write` and removes those of its workspace. Whoever else writes raises `foreign_writes` before
 * his rows change, and holds a lock until they are committed: an import that gets the lock begins behind all that it cannot see yet.
 */
export const rememberedImports: Migration = {
    id: '0090-remembered-imports',
    sql: `
create table scanwire.remembered_imports (
    import_id uuid primary key,
    workspace_id integer not null references scanwire.workspaces on delete cascade,
    origin text not null,
    version text not null,
    replace boolean not null,
    boundary text,
    limit_to_network boolean not null,
    foreign_writes bigint not null,
    counts jsonb,
    used_at timestamptz(3) not null,
    host_count integer not null default 0
);
create index on scanwire.remembered_imports (workspace_id);

create table scanwire.remembered_hosts (
    import_id uuid not null references scanwire.remembered_imports on delete cascade,
    number bigint generated always as identity,
    hosts integer[] not null,
    primary key (import_id, number)
);

create sequence scanwire.foreign_writes;
select setval('scanwire.foreign_writes', 1);
grant usage, select on sequence scanwire.foreign_writes to public;

create function scanwire.note_foreign_write() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock_shared(hashtext('scanwire.foreign_writes'), 0);
    perform nextval('scanwire.foreign_writes');
    return null;
end $$;
${TABLES.map(
    (table) => `
create trigger note_foreign_write before insert or update or delete or truncate on scanwire.${table} for each statement
    when (current_setting('scanwire.own_write', true) is distinct from 'yes') execute function scanwire.note_foreign_write();
`,
).join('')}`,
};
