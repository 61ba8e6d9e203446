import type { Migration } from '../migrate.ts';

/**
 * What becomes of exporters while outcomes are recorded, until somebody has told it. The condition of the trigger is read on each change of
 * an exporter's row, at most once a second while it fares well; its function runs only when there is something to tell.
 */
const sql = `
-- Whether it has failed or was stopped, which was told, and has taken nothing since.
alter table scanwire.exporters add column unwell boolean not null default false;

create table scanwire.exporter_notices (
    seq bigint generated always as identity primary key,
    -- of the event that tells it
    id uuid not null unique default gen_random_uuid(),
    exporter_id uuid not null,
    kind text not null,
    name text not null,
    collector text not null,
    owner text,
    failures integer not null,
    failing_since timestamptz,
    reason text,
    last_outcome json,
    at timestamptz not null
);

create function scanwire.notice_exporter()
returns trigger
language plpgsql
as $$
declare
    stops boolean := old.state = 'running' and new.state = 'stopped' and new.stop_reason is not null;
    fails boolean := old.probe_at is null and new.probe_at is not null;
begin
    insert into scanwire.exporter_notices
        (exporter_id, kind, name, collector, owner, failures, failing_since, reason, last_outcome, at)
    values (
        new.id,
        case when stops then 'exporter_stopped' when fails then 'exporter_failing' else 'exporter_recovered' end,
        new.name, new.collector, new.owner, new.consecutive_failures, coalesce(new.failing_since, old.failing_since),
        new.stop_reason, new.last_outcome, scanwire.now()
    );
    new.unwell := stops or fails;
    return new;
end
$$;

create trigger exporters_noticed
before update on scanwire.exporters
for each row
when (
    (old.probe_at is null and new.probe_at is not null)
    or (old.state = 'running' and new.state = 'stopped' and new.stop_reason is not null)
    or (
        old.unwell and new.failing_since is null and new.paused_until is null
        and new.last_outcome_at is distinct from old.last_outcome_at
    )
)
execute function scanwire.notice_exporter();
`;

export const exporterNotices: Migration = { id: '0024-exporter-notices', sql };
