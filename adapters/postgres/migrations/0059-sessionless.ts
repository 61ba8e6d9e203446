import type { Migration } from '../migrate.ts';

/**
 * Processes of a version that kept no session, which nobody sees. Where exporters have URLs from before they were sealed, such processes may
 * still send while they are replaced one after the other, and would take a sealed URL for one that is not valid and end the delivery: for a
 * day there counts one session more, of a process that opens none.
 */
const sql = `
create table scanwire.sessionless (id uuid not null, until timestamptz not null);

insert into scanwire.sessionless (id, until)
select gen_random_uuid(), scanwire.now() + interval '1 day'
where exists (select from scanwire.exporters e where e.url ~ '^[A-Za-z][A-Za-z0-9+.-]*://');
`;

export const sessionless: Migration = { id: '0059-sessionless', sql };
