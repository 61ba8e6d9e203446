import type { Migration } from '../migrate.ts';
import { replays } from './0026-replays.ts';
import { changed, replacing } from './0065-listed.ts';

/**
 * A replay begins with a tenth of a second's worth, as it goes on, or with its first delivery. With a second's worth at once it slowed down what was
 * accepted in that moment.
 */
const sql = changed(replacing(replays.sql, 'plan_replay'), [
    "last, at - interval '1 second'",
    "last, at - greatest(interval '100 ms', interval '1 second' / its_rate + interval '1 microsecond')",
]);

export const replaysBeginSlowly: Migration = { id: '0074-replays-begin-slowly', sql };
