import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * What is told from the number in flight alone is fewer places than there are, and where an eighth of the window is left to retries that are due, none:
 * then an event waited in its row for the next hand-out, of all that came while a replay's deliveries were due. The places are then counted.
 */
const sql = rewritten('accept_single_event', [
    [
        '    if least_places > 0 then\n',
        `    if least_places between 1 and (max_in_flight + 7) / 8 and exists (
        select from unnest(receiving) x (id)
        cross join lateral (
            select from scanwire.deliveries w
            where
                w.stage = 'waiting' and w.exporter_id = x.id and w.priority = 2 and w.due_at <= at
                and w.due_at >= coalesce(
                    (select m.due_from from scanwire.waiting_marks m where m.exporter_id = x.id and m.priority = 2), '-infinity'
                )
            limit 1
        ) w
    ) then
        least_places := null;
    end if;

    if least_places > 0 then
`,
    ],
]);

export const placesBesideRetries: Migration = { id: '0080-places-beside-retries', sql };
