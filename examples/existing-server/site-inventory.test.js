import { after, test } from 'node:test';
import pg from 'pg';
import { inventoryContract } from 'scanwire/contract';
import { TABLES } from './server.js';
import { siteInventory } from './site-inventory.js';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
after(() => pool.end());

// All that the tables hold, as the inventory must show it: two sites, and so many machines in one that a list takes several batches.
await pool.query(TABLES);
const { rows: workspaces } = await pool.query(`insert into site (name) values ('Oslo'), ('Lima') returning *`);
const { rows: hosts } = await pool.query(`
    insert into machine (site_id, ip, label)
    select case when n <= 2500 then 1 else 2 end, '10.0.0.0'::inet + n, 'machine-' || n from generate_series(1, 2501) n
    returning id, site_id as workspace_id, host(ip) as address, label as name, created_at, updated_at`);

inventoryContract(test, () => ({
    store: siteInventory(pool),
    rows: { workspaces, hosts },
    openReads: () => pool.totalCount - pool.idleCount,
}));
