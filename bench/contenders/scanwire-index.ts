import { randomBytes } from 'node:crypto';
import { server as hapiServer } from '@hapi/hapi';
import pg from 'pg';
import { keyRing } from 'scanwire/keys';
import { alwaysLicensed } from 'scanwire/license';
import { memoryApiKeys } from 'scanwire/memory';
import { migrate, postgresInventory } from 'scanwire/postgres';
import { plugin as restApi } from 'scanwire/rest-api-v2';
import { openScanDatabase } from 'scanwire/scan-database';
import { plugin as tokenAuth } from 'scanwire/token-auth';

/**
 * Serves an index of hosts, after it has put so many more into it, or, for `scan-database`, that of the first workspace there. Prints the
 * address of the index and an API key.
 */
const [database = '', more = '0'] = process.argv.slice(2);
const { inventory, id } =
    more === 'scan-database' ? { ...(await openScanDatabase({ connectionString: database, connections: 8 })), id: 1 } : await ownTables();
const server = hapiServer({ host: '127.0.0.1', port: 0 });
const ring = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring } });
await server.register({ plugin: restApi, options: { store: inventory, license: alwaysLicensed() } });
await server.start();
const { key } = await server.plugins['token-auth'].create('bench');
process.stdout.write(`${server.info.uri}/rest_api/v2/workspaces/${id}/hosts ${key}\n`);

async function ownTables() {
    const pool = new pg.Pool({ connectionString: database, max: 8 });
    await migrate(pool);
    const inventory = postgresInventory({ pool });
    if (more !== '0') {
        await inventory.importHosts('bench', network(Number(more)));
        await pool.query('vacuum analyze');
    }

    const { id } = await inventory.ensureWorkspace('bench');
    return { inventory, id };
}

async function* network(count: number) {
    for (let index = 1; index <= count; index += 1) {
        yield {
            address: `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`,
            name: `host-${index}.example.com`,
            state: 'alive',
            mac: `00:50:56:${(index & 255).toString(16).padStart(2, '0')}:01:02`,
            os_name: 'Linux',
            os_flavor: 'Debian',
            os_sp: '12',
            purpose: 'server',
            info: `rack ${index % 40}`,
            comments: 'seen by the weekly scan',
        } as const;
    }
}
