import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * A fixed snapshot still sees the row of a key that another has removed, beside the one that a list has written in its place. What became of an event is noted at
 * the key that leads to it: at the other row that would be a serialisation failure, though the key was free.
 */
const AT_ITS_OWN = [
    [
        'join input i on i.id = n.event_id and i.key is not null\n        where k.owner',
        'join input i on i.id = n.event_id and i.key is not null\n        where k.event_id = any (array[n.event_id]) and k.owner',
    ],
] as const;

const sql = ['accept_chosen_events', 'accept_ordered_events'].map((name) => rewritten(name, AT_ITS_OWN)).join('\n');

export const ownKeysNoted: Migration = { id: '0086-own-keys-noted', sql };
