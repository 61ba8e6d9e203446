import type { Migration } from '../migrate.ts';

/**
 * The one deployment of this database: its id, and what its host has settled for all its processes. Nothing secret is in it. The row is
 * made when it is first asked for, so that databases that are made from one template differ.
 */
export const deployment: Migration = {
    id: '0006-deployment',
    sql: `
create table scanwire.deployment (
    id uuid not null default gen_random_uuid(),
    generation integer not null default 0,
    settings jsonb
);

create unique index deployment_is_one on scanwire.deployment ((true));

-- of the settings that its process sends with; null for processes of the version before
alter table scanwire.worker_sessions add column generation integer;
`,
};
