import type { Migration } from '../migrate.ts';

/**
 * HTTPS scan records.
 *
 * A record is kept as its canonical line, as text: `json` and `jsonb` refuse some of what JSON allows. Its digest finds it again.
 * `ip` and `host` are what lookups compare; a listing goes by ascending id, so each lookup has an index that ends with it.
 * `imported_at` ascends with the id, so that a time is found in its index once for a listing.
 */
export const records: Migration = {
    id: '0003-records',
    sql: `
create table scanwire.records (
    id bigint generated always as identity primary key,
    digest bytea not null unique,
    imported_at timestamptz(3) not null,
    ip inet not null,
    host text not null,
    record text not null
);

create index on scanwire.records (ip, id);
create index on scanwire.records (host, id);
create index on scanwire.records (imported_at, id);
`,
};
