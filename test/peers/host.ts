/*
 * A host with all plugins, its own schema in the kinds of events and in a resource. `run.ts` brings it into a project of its own, where the
 * types are checked and it runs: `node host.js joi`, or `node host.js none` for a host that has no Joi.
 */
import { randomBytes } from 'node:crypto';
import { server as hapiServer } from '@hapi/hapi';
import { plugin as httpsRecordSchema } from 'scanwire/https-record-schema';
import { keyRing } from 'scanwire/keys';
import { alwaysLicensed } from 'scanwire/license';
import { memoryApiKeys, memoryInventory, memoryQueue, memoryRecords, memoryWebhooks } from 'scanwire/memory';
import { plugin as restApiV2 } from 'scanwire/rest-api-v2';
import { plugin as tokenAuth } from 'scanwire/token-auth';
import { plugin as webhookExporter } from 'scanwire/webhook-exporter';
import { type EventKind, type StandardSchema, timestamp } from 'scanwire/webhooks';

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

await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: sealing } });
await server.register({
    plugin: restApiV2,
    options: { store: memoryInventory(), license: alwaysLicensed(), resources: [{ path: '/jobs', ...own, store }] },
});
await server.register({ plugin: httpsRecordSchema, options: { auth: 'token', records: memoryRecords() } });
await server.register({
    plugin: webhookExporter,
    options: { stores: memoryWebhooks(), queue: memoryQueue(), keyRing: sealing, kinds: [{ name: 'scan_finished', ...own }] },
});
await server.start();

const { key } = await server.plugins['token-auth'].create('first key');
const answer = await fetch(`${server.info.uri}/rest_api/v2/jobs/1`, { headers: { token: key } });
const { deliveries } = await server.plugins['webhook-exporter'].publish('scan_finished', { id: 1, at: '2026-01-01T00:00:00Z' });
const refused = await server.plugins['webhook-exporter'].publish('scan_finished', null).catch((error: Error) => error.message);
await server.stop();
const joi = process.argv[2] === 'none' ? 'none' : (await import('joi')).default.version;
process.stdout.write(JSON.stringify({ hapi: server.version, joi, status: answer.status, row: await answer.json(), deliveries, refused }));
