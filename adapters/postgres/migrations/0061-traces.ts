import type { Migration } from '../migrate.ts';

/**
 * In which step of a trace an event was published. No event refers to it and it refers to none, so that who traces nothing pays nothing: neither a
 * column that is written nor a constraint that is looked at when events are removed.
 */
const sql = `
create table scanwire.traces (event_id uuid primary key, traceparent text not null, kept_at timestamptz not null);

create index traces_kept_at on scanwire.traces (kept_at);
`;

export const traces: Migration = { id: '0061-traces', sql };
