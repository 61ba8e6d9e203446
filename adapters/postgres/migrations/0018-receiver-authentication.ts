import type { Migration } from '../migrate.ts';

/**
 * What an exporter authenticates by to its receiver, besides signatures and headers.
 *
 * Processes of the version before go on beside those of this one: they send without it, so that the first one is to be given any once all are
 * of this version.
 */
export const receiverAuthentication: Migration = {
    id: '0018-receiver-authentication',
    sql: `
alter table scanwire.exporters
    add column authentication json not null default '[]',
    add column sealed_authentication text;

create trigger exporters_authentication_generation
before update on scanwire.exporters
for each row
when (old.sealed_authentication is distinct from new.sealed_authentication)
execute function scanwire.next_generation();
`,
};
