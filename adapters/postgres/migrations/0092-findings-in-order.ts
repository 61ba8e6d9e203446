import type { IndexMigration, Migration } from '../migrate.ts';

/**
 * Notes and vulnerabilities of a host by what they are called and the service that they are about, of which an import looks each up: a name that all
 * services of a host have in common found all of them for each. And vulnerabilities of a host in the order of their ids, in which pieces of them are walked.
 */
const indexes: readonly IndexMigration[] = [
    {
        id: '0092-findings-in-order-1-notes',
        index: { name: 'notes_alike', table: 'notes', keys: `(host_id, (coalesce(left(ntype, 200), '')), (coalesce(service_id, 0)), id)` },
    },
    {
        id: '0092-findings-in-order-2-vulns',
        index: { name: 'vulns_alike', table: 'vulns', keys: `(host_id, (coalesce(left(name, 200), '')), (coalesce(service_id, 0)), id)` },
    },
    { id: '0092-findings-in-order-3-vulns-of-hosts', index: { name: 'vulns_of_hosts', table: 'vulns', keys: '(host_id, id)' } },
];

/** Those that they replace. */
const replaced: Migration = {
    id: '0092-findings-in-order-4-replaced',
    sql: `
drop index scanwire.notes_host_id_coalesce_id_idx;
drop index scanwire.vulns_host_id_coalesce_id_idx;
drop index scanwire.vulns_host_id_idx;
`,
};

export const findingsInOrder: readonly Migration[] = [...indexes, replaced];
