import type { Migration } from '../migrate.ts';

/**
 * When each host was seen last, beside its row: an import sees many hosts and changes few. What an import notes has its generation and counts
 * from the moment that the import is shown; until then `seen_before` does. A host without a row was seen when it was changed last.
 */
export const sightings: Migration = {
    id: '0030-sightings',
    sql: `
create table scanwire.sightings (
    host_id integer primary key references scanwire.hosts on delete cascade,
    seen_at timestamptz(3),
    generation integer not null,
    seen_before timestamptz(3)
) with (fillfactor = 70);
`,
};
