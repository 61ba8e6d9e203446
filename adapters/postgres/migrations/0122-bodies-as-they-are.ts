import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * Bodies are JSON themselves: as the items of an array, and not as texts in it, they are neither written nor read once more, which was a fifth of what it takes
 * the database to accept many events. An item of `json` is the very text that was given. The function of before is for processes that still call it.
 */
const accept = rewritten('accept_alike_events', [
    [
        'FUNCTION scanwire.accept_alike_events(ids uuid[], events json, ',
        'FUNCTION scanwire.accept_written_events(ids uuid[], bodies json, given_kinds text[], given_owners text[], ',
    ],
    [
        `select i.id, i.kind, i.body, i.owner, at
    from json_to_recordset(events) as i (id uuid, kind text, body text, owner text)`,
        `select i.id, i.kind, i.body::text, i.owner, at
    from rows from (unnest(ids), unnest(given_kinds), json_array_elements(bodies), unnest(given_owners)) as i (id, kind, body, owner)`,
    ],
]);

export const bodiesAsTheyAre: Migration = { id: '0122-bodies-as-they-are', sql: accept };
