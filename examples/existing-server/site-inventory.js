import { newHost } from 'scanwire/inventory';

const BATCH = 500;

const SITES = `select id, name, created_at, updated_at from site where id > $1 and ($2::bigint is null or id = $2) order by id limit $3`;
const MACHINES = `select id, host(ip) as address, label, os, created_at, updated_at from machine
    where site_id = $4::bigint and id > $1 and ($2::bigint is null or id = $2) order by id limit $3`;

/** The company's own tables, as scanwire's workspaces and hosts: a site is a workspace, a machine is a host. */
export function siteInventory(pool) {
    return {
        workspaces: collection(pool, SITES, (site) => ({
            ...site,
            boundary: null,
            description: null,
            owner_id: null,
            limit_to_network: false,
        })),
        hosts: collection(pool, MACHINES, ({ address, label, os, ...machine }, [siteId]) => ({
            ...newHost({ address, name: label, os_name: os ?? '' }),
            ...machine,
            workspace_id: siteId,
        })),
    };
}

/** Reads row after row by key, so that the size of the table does not matter. `$1` last id seen, `$2` one id or null, `$3` limit. */
function collection(pool, statement, toRow) {
    const read = async (parents, after, id, limit) => {
        const { rows } = await pool.query(statement, [after, id, limit, ...parents]);
        return rows.map((row) => toRow(row, parents));
    };

    return {
        async *list(parents, { signal } = {}) {
            for (let after = 0; ; ) {
                signal?.throwIfAborted();
                const batch = await read(parents, after, null, BATCH);
                if (batch.length === 0) {
                    return;
                }

                yield batch;
                after = batch.at(-1).id;
            }
        },

        async get(parents, id) {
            const [row] = await read(parents, 0, id, 1);
            return row ?? null;
        },
    };
}
