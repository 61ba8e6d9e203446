import { readOnlyInventory } from 'scanwire/inventory';

const SITES = 'select id, name, created_at, updated_at from site where id > $1 order by id limit $2';
const MACHINES = `select id, host(ip) as address, label as name, os as os_name, created_at, updated_at from machine
    where site_id = $3 and id > $1 order by id limit $2`;

/** The company's own tables, as scanwire's workspaces and hosts: a site is a workspace, a machine is a host. */
export function siteInventory(pool) {
    const rows = async (statement, { after, limit }, parents) => (await pool.query(statement, [after, limit, ...parents])).rows;
    return readOnlyInventory({
        workspaces: (parents, page) => rows(SITES, page, parents),
        hosts: (parents, page) => rows(MACHINES, page, parents),
    });
}
