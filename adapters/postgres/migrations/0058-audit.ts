import type { Migration } from '../migrate.ts';

/** What people have done, newest last. */
const sql = `
create table scanwire.audit_entries (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    actor text not null,
    operation text not null,
    subject text,
    outcome text
);

create index audit_entries_at on scanwire.audit_entries (at, id);
`;

export const audit: Migration = { id: '0058-audit', sql };
