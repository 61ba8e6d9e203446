import type { Migration } from '../migrate.ts';

/** Notes and vulnerabilities of a host by what they are called, of which an index takes no long text: an import looks each of them up. */
export const findingKeys: Migration = {
    id: '0052-finding-keys',
    sql: `
create index on scanwire.notes (host_id, (coalesce(left(ntype, 200), '')), id);
create index on scanwire.vulns (host_id, (coalesce(left(name, 200), '')), id);
`,
};
