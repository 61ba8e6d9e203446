import type { Migration } from '../migrate.ts';

/** The workspaces that an API key sees and the time at which it ends; null, as keys have it that exist, for all and for never. */
export const keyLimits: Migration = {
    id: '0010-key-limits',
    sql: `
alter table scanwire.api_keys
add column workspaces integer[],
add column expires_at timestamptz(3);
`,
};
