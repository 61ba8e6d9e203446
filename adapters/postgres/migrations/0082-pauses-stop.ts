import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/** Who only asks to be left alone takes nothing: an exporter is stopped after that time of answers that are pauses, too. */
const sql = rewritten('apply_health', [
    [
        "case when o.health <> 'none' and at - e.failing_since",
        "case when (o.health <> 'none' or o.pause is not null) and at - e.failing_since",
    ],
]);

export const pausesStop: Migration = { id: '0082-pauses-stop', sql };
