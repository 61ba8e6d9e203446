import { randomBytes } from 'node:crypto';
import { server as hapiServer } from '@hapi/hapi';
import pg from 'pg';
import { keyRing } from 'scanwire/keys';
import { alwaysLicensed } from 'scanwire/license';
import { memoryApiKeys, memoryInventory } from 'scanwire/memory';
import { openEmbeddedDatabase } from 'scanwire/pglite';
import { migrate, postgresInventory } from 'scanwire/postgres';
import { plugin as restApi } from 'scanwire/rest-api-v2';
import { openScanDatabase } from 'scanwire/scan-database';
import { plugin as tokenAuth } from 'scanwire/token-auth';
import { network } from '../network.ts';

/**
 * Serves the hosts of a workspace from a store of a kind, after it has put so many more into it. API keys are in memory. Prints the address
 * of the index and an API key.
 */
const [kind = '', place = '', more = '0'] = process.argv.slice(2);

/** The host's inventory, and the id of the workspace. */
const stores = {
    async memory() {
        const inventory = memoryInventory();
        await inventory.importHosts('bench', network(Number(more)));
        return { inventory, id: (await inventory.ensureWorkspace('bench')).id };
    },

    postgres: () => inTables(new pg.Pool({ connectionString: place, max: 8 })),

    embedded: async () => inTables(await openEmbeddedDatabase({ folder: place })),

    /** Its first workspace, with what is there. */
    'scan-database': async () => ({ ...(await openScanDatabase({ connectionString: place, connections: 8 })), id: 1 }),
};

const { inventory, id } = await stores[kind as keyof typeof stores]();
const server = hapiServer({ host: '127.0.0.1', port: 0 });
const ring = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring } });
await server.register({ plugin: restApi, options: { store: inventory, license: alwaysLicensed() } });
await server.start();
const { key } = await server.plugins['token-auth'].create('bench');
process.stdout.write(`${server.info.uri}/rest_api/v2/workspaces/${id}/hosts ${key}\n`);

async function inTables(pool: Parameters<typeof migrate>[0]) {
    await migrate(pool);
    const inventory = postgresInventory({ pool });
    if (more !== '0') {
        await inventory.importHosts('bench', network(Number(more)));
        await pool.query('vacuum analyze');
    }

    return { inventory, id: (await inventory.ensureWorkspace('bench')).id };
}
