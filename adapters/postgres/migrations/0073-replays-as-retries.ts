import type { SqlMigration } from '../migrate.ts';
import { replays } from './0026-replays.ts';
import { changed, listedAcceptance, replacing } from './0065-listed.ts';

/**
 * What is replayed among many waits like a retry: behind first tries, with the share of retries. As a first try of old it went before all that was
 * accepted since, for seconds where there was more of it than could be sent.
 */
const advance = changed(replacing(replays.sql, 'advance_replays'), [
    "set state = 'pending', priority = 1, round = 0,",
    // Who has been queued since an earlier time is looked for among retries: this one was replayed.
    "set state = 'pending', priority = 2, queued_at = null, round = 0,",
]);

const retriesOf = (exporter: string): string => `exists (
        select from scanwire.deliveries w
        where
            w.stage = 'waiting' and w.exporter_id = ${exporter} and w.priority = 2 and w.due_at <= at
            and w.due_at >= coalesce(
                (select m.due_from from scanwire.waiting_marks m where m.exporter_id = ${exporter} and m.priority = 2), '-infinity'
            )
    )`;

/** What retries that are due leave of the places of an exporter. */
const leftOf = (places: string, exporter: string): string =>
    `${places} - case when ${retriesOf(exporter)} then (max_in_flight + 7) / 8 else 0 end`;

const PLACES = 'least(r.share - r.flying, r.pool_room)';

/**
 * First tries are before retries, but for the share of those: an event is handed out at once beside retries that are due, as long as an eighth of
 * the window is left to them.
 */
const acceptance = listedAcceptance
    .map((sql) => sql.replaceAll('(values (1::smallint), (2::smallint)) c (priority)', '(values (1::smallint)) c (priority)'))
    .map((sql) =>
        sql.includes('scanwire.accept_single_event(')
            ? changed(sql, ['not e.holds and e.places > 0 and', `not e.holds and ${leftOf('e.places', 'e.id')} > 0 and`])
            : sql.replaceAll(PLACES, leftOf(PLACES, 'r.exporter_id')),
    );

export const replaysAsRetries: SqlMigration = { id: '0073-replays-as-retries', sql: [advance, ...acceptance].join('\n') };
