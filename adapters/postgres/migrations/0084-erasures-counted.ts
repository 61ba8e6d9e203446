import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * How many bodies of events were erased since the tables that had them were last rewritten, in place of `events_rewritten_at`: the times of the erasures are
 * in the rows of the events, which retention removes, and a row that is gone says nothing of what its page still holds. Of use to the embedded database only,
 * whose backups are copies of its pages; on a server nobody reads it.
 *
 * A sequence, for which nobody waits: many may erase at once, in transactions of any length. What is rolled back is counted as well, and after a crash it may
 * say more than there were. Both cost no more than to rewrite the tables once in vain.
 *
 * What was erased before is not known where its rows are gone, so a database that has been used begins with one.
 */
const sql = `
create sequence scanwire.erased_bodies minvalue 0;

grant usage on sequence scanwire.erased_bodies to public;

select pg_catalog.setval(
    'scanwire.erased_bodies',
    case when pg_catalog.pg_relation_size('scanwire.events') > 0 or exists (select from scanwire.deployment) then 1 else 0 end
);
${rewritten('erase_messages', [['\nbegin\n', `\nbegin\n    perform pg_catalog.nextval('scanwire.erased_bodies');\n`]])}
`;

export const erasuresCounted: Migration = { id: '0084-erasures-counted', sql };
