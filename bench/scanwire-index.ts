import { randomBytes } from 'node:crypto';
import { server as hapiServer } from '@hapi/hapi';
import { Pool } from 'pg';
import { memoryApiKeys } from '../adapters/memory/index.ts';
import { postgresInventory } from '../adapters/postgres/index.ts';
import { keyRing } from '../lib/keys/key-ring.ts';
import { alwaysLicensed } from '../lib/license/index.ts';
import { plugin as restApi } from '../plugins/rest-api-v2/index.ts';
import { plugin as tokenAuth } from '../plugins/token-auth/index.ts';

/** The index of hosts as scanwire serves it. Prints its address and an API key. */
const [database = ''] = process.argv.slice(2);
const pool = new Pool({ connectionString: database, max: 8 });
const server = hapiServer({ host: '127.0.0.1', port: 0 });
const ring = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring } });
await server.register({ plugin: restApi, options: { store: postgresInventory({ pool }), license: alwaysLicensed() } });
await server.start();
const { key } = await server.plugins['token-auth'].create('bench');
process.stdout.write(`${server.info.uri} ${key}\n`);
