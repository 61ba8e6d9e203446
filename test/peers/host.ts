/*
 * A host with all plugins, its own schema in the kinds of events and in a resource. `run.ts` brings it into a project of its own, where the
 * types are checked and it runs: `node host.js joi`, or `node host.js none` for a host that has no Joi. What a plugin, or a part of one, needs
 * of packages the host has or has not: why one cannot be used is in what it finds out.
 */
import { randomBytes } from 'node:crypto';
import { server as hapiServer } from '@hapi/hapi';
import { plugin as adminConsole } from 'scanwire/admin-console';
import { plugin as httpsRecordSchema } from 'scanwire/https-record-schema';
import { keyRing } from 'scanwire/keys';
import { alwaysLicensed } from 'scanwire/license';
import { plugin as mcp } from 'scanwire/mcp';
import { memoryApiKeys, memoryInventory, memoryQueue, memoryRecords, memoryWebhooks } from 'scanwire/memory';
import { plugin as metasploitData } from 'scanwire/metasploit-data';
import { plugin as metrics } from 'scanwire/metrics';
import { plugin as restApiV2 } from 'scanwire/rest-api-v2';
import { plugin as tokenAuth } from 'scanwire/token-auth';
import { plugin as webhookAuth } from 'scanwire/webhook-auth';
import { plugin as webhookExporter } from 'scanwire/webhook-exporter';
import { type EventKind, type StandardSchema, timestamp, webhookTracing } from 'scanwire/webhooks';

const notNull: StandardSchema = { '~standard': { version: 1, vendor: 'host', validate } };

function validate(value: unknown): { readonly value: unknown } | { readonly issues: readonly { readonly message: string }[] } {
    return value === null ? { issues: [{ message: 'Must be an object' }] } : { value };
}

async function kindOf(joi: string | undefined): Promise<Pick<EventKind, 'schema' | 'fields' | 'jsonSchema'>> {
    if (joi === 'none') {
        return { schema: notNull, fields: ['at', 'id'], jsonSchema: { properties: { at: { type: 'string' }, id: { type: 'integer' } } } };
    }

    const { default: Joi } = await import('joi');
    return { schema: Joi.object({ at: timestamp(Joi).required(), id: Joi.number().required() }) };
}

const server = hapiServer({ host: '127.0.0.1', port: 0 });
const sealing = keyRing({ current: 'k1', keys: { k1: randomBytes(32) } });
const own = await kindOf(process.argv[2]);
const row = { id: 1, at: 'x' };
const store = {
    list: async function* () {
        yield [row];
    },
    get: async () => row,
};

/** What packages were found missing or too old, by what needs them; null where one is as it should be. */
const lacks: Record<string, string | null> = {};

async function tried<Result>(name: string, use: () => Promise<Result>): Promise<Result | undefined> {
    try {
        const result = await use();
        lacks[name] = null;
        return result;
    } catch (error) {
        lacks[name] = (error as Error).message;
        return undefined;
    }
}

const inventory = memoryInventory();
const license = alwaysLicensed();
await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: sealing } });
await server.register({
    plugin: restApiV2,
    options: { store: inventory, license, resources: [{ path: '/jobs', ...own, store }] },
});
await server.register({ plugin: httpsRecordSchema, options: { auth: 'token', records: memoryRecords() } });
await server.register({
    plugin: webhookExporter,
    options: { stores: memoryWebhooks(), queue: memoryQueue(), keyRing: sealing, kinds: [{ name: 'scan_finished', ...own }] },
});
await server.register({ plugin: webhookAuth, options: { secrets: [`whsec_${randomBytes(32).toString('base64')}`] } });
await server.register({ plugin: metasploitData, options: { store: inventory, license } });
server.auth.scheme('anybody', () => ({ authenticate: (_, h) => h.authenticated({ credentials: { user: { id: 'ada' } } }) }));
server.auth.strategy('session', 'anybody');
const system = { keys: server.plugins['token-auth'], webhooks: server.plugins['webhook-exporter'], inventory };
const console = { system, auth: 'session', authorize: () => true };
await server.register({ plugin: adminConsole, options: console });

await tried('mcp', () => server.register({ plugin: mcp, options: { store: inventory, license } }));
await tried('metrics', () => server.register({ plugin: metrics, options: { auth: false, processMetrics: true } }));
await tried('tracing', () => webhookTracing());
await tried('screens', () =>
    server.register({ plugin: adminConsole, options: { ...console, instance: 'pages', routes: false, screens: {} } }),
);
const more = { instance: 'more', store: inventory, license };
await tried('rateLimit', () =>
    server.register({ plugin: restApiV2, options: { ...more, rateLimit: { requests: 9 } } }, { routes: { prefix: '/limited' } }),
);
await tried('page', () =>
    server.register(
        { plugin: restApiV2, options: { ...more, instance: 'shown', openapi: { page: '/api-docs' } } },
        { routes: { prefix: '/shown' } },
    ),
);
await server.start();

const { key } = await server.plugins['token-auth'].create('first key');
const answer = await fetch(`${server.info.uri}/rest_api/v2/jobs/1`, { headers: { token: key } });
const { deliveries } = await server.plugins['webhook-exporter'].publish('scan_finished', { id: 1, at: '2026-01-01T00:00:00Z' });
const refused = await server.plugins['webhook-exporter'].publish('scan_finished', null).catch((error: Error) => error.message);
const headers = { token: key, accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
const initialize = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'host', version: '1' } };
const asked: Readonly<Record<string, RequestInit & { readonly path: string }>> = {
    'metasploit-data': { path: '/api/v1/hosts' },
    'admin-console': { path: '/admin-console/exporters' },
    mcp: { path: '/mcp', method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize }) },
    metrics: { path: '/metrics' },
    screens: { path: '/admin/exporters' },
    rateLimit: { path: '/limited/rest_api/v2/workspaces' },
    page: { path: '/shown/api-docs' },
};
const statuses: Record<string, number> = {};
for (const [name, { path, ...init }] of Object.entries(asked)) {
    const { status } = await fetch(`${server.info.uri}${path}`, { headers, ...init });
    statuses[name] = status;
}
await server.stop();
const joi = process.argv[2] === 'none' ? 'none' : (await import('joi')).default.version;
process.stdout.write(
    JSON.stringify({ hapi: server.version, joi, status: answer.status, row: await answer.json(), deliveries, refused, lacks, statuses }),
);
