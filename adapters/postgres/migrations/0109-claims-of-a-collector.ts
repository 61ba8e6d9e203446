import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/*
 * A worker of the collector that an exporter has been moved away from sent what its queue still had, to the new URL. Now that goes back, and is queued for the
 * other collector. A request of a process of before names no collector.
 */

const claim = rewritten('claim_attempts', [
    ['duration double precision, "grant" text, holds boolean)', 'duration double precision, "grant" text, holds boolean, collector text)'],
    [
        "current and (a.priority = 0 or (e.state = 'running' and e.paused_at is null)) as claimed",
        `current and (a.priority = 0 or (e.state = 'running' and e.paused_at is null))
                and coalesce(a.collector = e.collector, true) as claimed`,
    ],
]);

export const claimsOfACollector: Migration = { id: '0109-claims-of-a-collector', sql: claim };
