import type { Migration } from '../migrate.ts';

/** What was deleted while the migration `0068-tombstones` waited for whoever did it, after its time, was not written down. */
export const deletionsKnown: Migration = {
    id: '0074-deletions-known',
    sql: `
update scanwire.tombstone_keeping set begun_at = scanwire.now()
-- was made a moment ago
where begun_at > scanwire.now() - interval '1 hour';
`,
};
