import type { Migration } from '../migrate.ts';

/**
 * Notes and vulnerabilities of a host by what they are called and the service that they are about, of which an import looks each up: a name that all
 * services of a host have in common found all of them for each. And vulnerabilities of a host in the order of their ids, in which pieces of them are walked.
 */
export const findingsInOrder: Migration = {
    id: '0092-findings-in-order',
    sql: `
create index on scanwire.notes (host_id, (coalesce(left(ntype, 200), '')), (coalesce(service_id, 0)), id);
create index on scanwire.vulns (host_id, (coalesce(left(name, 200), '')), (coalesce(service_id, 0)), id);
create index on scanwire.vulns (host_id, id);
drop index scanwire.notes_host_id_coalesce_id_idx;
drop index scanwire.vulns_host_id_coalesce_id_idx;
drop index scanwire.vulns_host_id_idx;
`,
};
