import type { Migration } from '../migrate.ts';

/**
 * What each API key may do. Keys that exist, and those that processes of the version before go on making, have what keys had in effect
 * until now; the constant default rewrites no table.
 */
export const scopes: Migration = {
    id: '0009-scopes',
    sql: `
alter table scanwire.api_keys
add column scopes text[] not null default '{inventory:read,records:read,records:write}';
`,
};
