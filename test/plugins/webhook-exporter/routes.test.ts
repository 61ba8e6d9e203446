import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mock } from 'node:test';
import { deflateSync, gzipSync } from 'node:zlib';
import { server as hapiServer, type Server, type ServerInjectResponse } from '@hapi/hapi';
import Joi from 'joi';
import t, { type Test } from 'tap';
import { memoryApiKeys, memoryQueue, memoryWebhooks } from '../../../adapters/memory/index.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import { keyRing } from '../../../lib/keys/key-ring.ts';
import type { ApiKeyScope } from '../../../lib/keys/scopes.ts';
import type { InvestigationCreated } from '../../../lib/webhooks/events/event-body-types.ts';
import { plugin as tokenAuth } from '../../../plugins/token-auth/index.ts';
import { plugin, type WebhookExporterOptions } from '../../../plugins/webhook-exporter/index.ts';

const ring = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
const sample = JSON.parse(readFileSync('fixtures/events/investigation.json', 'utf8')) as InvestigationCreated;
const KIND = 'idr_investigation_created';
const EVENTS = '/webhook-exporter/events';
const DELIVERIES = '/webhook-exporter/deliveries';

/** A server with the routes and one running exporter, whose deliveries nobody sends. */
async function served(t: Test, more: Partial<WebhookExporterOptions> = {}, stores = memoryWebhooks()) {
    const server = hapiServer({ debug: false });
    await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring } });
    const options = { stores, queue: memoryQueue(), keyRing: ring, collectors: [], routes: {}, health: {} };
    await server.register({ plugin, options: { ...options, egress: { allow: ['127.0.0.0/8'] }, ...more } });
    await server.initialize();
    t.teardown(() => server.stop());
    const { exporters } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: 'http://127.0.0.1:9/secret-path' });
    await stores.exporters.update(exporter.id, { state: 'running' });
    return { server, exporter };
}

async function keyFor(server: Server, scopes: readonly ApiKeyScope[], more: object = {}): Promise<string> {
    return (await server.plugins['token-auth'].create('program', { scopes, ...more })).key;
}

function publishing(server: Server, token: string, payload: unknown, headers: object = {}): Promise<ServerInjectResponse> {
    return server.inject({ method: 'POST', url: EVENTS, headers: { token, ...headers }, payload: payload as object });
}

const json = ({ statusCode, payload }: ServerInjectResponse) => ({ statusCode, ...JSON.parse(payload) });

t.test('accepts an event of a key with events:publish, once under an idempotency key', async (t) => {
    const { server } = await served(t);
    const key = await keyFor(server, ['events:publish']);
    const event = { kind: KIND, body: sample, rules: 'library', idempotencyKey: 'one' };
    const first = json(await publishing(server, key, event));
    t.match(first, { statusCode: 202, eventId: String, deliveries: [String] });
    t.strictSame(json(await publishing(server, key, event)), first);

    const { idempotencyKey: _, ...plain } = event;
    t.strictSame(json(await publishing(server, key, plain, { 'idempotency-key': 'one' })), first);
    t.not(json(await publishing(server, key, plain)).eventId, first.eventId);
    t.match(json(await publishing(server, key, { ...plain, orderKey: 'one' })), { statusCode: 202, deliveries: [String] });
    const other = { ...event, body: { ...sample, title: 'another' } };
    t.match(json(await publishing(server, key, other)), { statusCode: 409, code: 'CONFLICT', field: 'idempotencyKey' });
    const both = await publishing(server, key, event, { 'idempotency-key': 'two' });
    t.match(json(both), { statusCode: 400, code: 'INVALID_INPUT', field: 'idempotencyKey' });
});

t.test('refuses an event that is packed before it is read: two kilobytes of gzip would cost what two megabytes do', async (t) => {
    const { server } = await served(t);
    const key = await keyFor(server, ['events:publish']);
    const headers = { token: key, 'content-type': 'application/json' };
    const event = JSON.stringify({ kind: KIND, body: sample });
    const send = async (encoding: string, payload: string | Buffer) =>
        json(await server.inject({ method: 'POST', url: EVENTS, headers: { ...headers, 'content-encoding': encoding }, payload }));
    for (const [encoding, payload] of [
        ['gzip', gzipSync(event)],
        ['GZIP', gzipSync('[')],
        ['deflate', deflateSync(event)],
        ['br', 'never unpacked'],
    ] as const) {
        t.match(await send(encoding, payload), { statusCode: 415, message: /^Content-Encoding must not be given/ }, encoding);
    }

    t.match(await send('identity', event), { statusCode: 202 });
});

t.test('names the field that is wrong with an event', async (t) => {
    const { server } = await served(t, { kinds: [{ name: 'open', schema: Joi.object().unknown() }] });
    const key = await keyFor(server, ['events:publish']);
    const refused = async (payload: unknown, field: string | undefined) =>
        t.match(json(await publishing(server, key, payload)), { statusCode: 400, code: 'INVALID_INPUT', ...(field && { field }) });
    await refused(undefined, undefined);
    await refused({ body: {} }, 'kind');
    await refused({ kind: KIND }, 'body');
    await refused({ kind: 'no_such', body: {} }, 'kind');
    await refused({ kind: 'test', body: {} }, 'kind');
    await refused({ kind: KIND, body: { ...sample, title: 7 } }, 'title');
    await refused({ kind: KIND, body: sample, rules: 'none' }, 'rules');
    await refused({ kind: KIND, body: sample, orderKey: 7 }, 'orderKey');
    await refused({ kind: KIND, body: sample, owner: 7 }, 'owner');
    await refused({ kind: KIND, body: sample, tx: {} }, 'tx');
    await refused(`{"kind":"open","body":{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}}`, 'body');
    const form = await publishing(server, key, 'kind=test', { 'content-type': 'application/x-www-form-urlencoded' });
    t.equal(form.statusCode, 415);
    const long = await publishing(server, key, { kind: KIND, body: { x: 'a'.repeat(4 * 1_048_576) } });
    t.equal(long.statusCode, 413, long.payload);
});

t.test('takes the longest body with each of its characters in an escape', async (t) => {
    const { server } = await served(t, { kinds: [{ name: 'open', schema: Joi.object().unknown() }] });
    const key = await keyFor(server, ['events:publish']);
    // two bytes as it is stored, six as it is sent
    const body = `{"a":"${'\\u0439'.repeat((1_048_576 - '{"a":""}'.length) / 2)}"}`;
    const answer = await publishing(server, key, `{"kind":"open","body":${body}}`);
    t.equal(answer.statusCode, 202, answer.payload);
});

t.test('shows deliveries, page by page, to a key with deliveries:read, and of receivers nothing', async (t) => {
    const { server, exporter } = await served(t);
    const { publish } = server.plugins['webhook-exporter'];
    const ids: string[] = [];
    for (const title of ['one', 'two', 'three']) {
        ids.unshift(...(await publish(KIND, { ...sample, title })).deliveries);
    }
    const token = await keyFor(server, ['deliveries:read']);
    const get = async (url: string) => json(await server.inject({ url, headers: { token } }));
    const first = await get(`${DELIVERIES}?limit=2&exporterId=${exporter.id}`);
    t.match(first, { statusCode: 200, deliveries: [{ id: ids[0], kind: KIND }, { id: ids[1] }], next: String });
    t.match(await get(first.next), { deliveries: [{ id: ids[2] }], next: null });
    t.match(await get(`${DELIVERIES}?state=no`), { statusCode: 400, field: 'state' });

    const one = await server.inject({ url: `${DELIVERIES}/${ids[0]}`, headers: { token } });
    t.match(json(one), { id: ids[0], history: [] });
    t.notMatch(one.payload, /127\.0\.0\.1|secret-path|three/);
    t.match(await get(`${DELIVERIES}/00000000-0000-4000-8000-000000000000`), { statusCode: 404, code: 'NOT_FOUND' });
});

t.test('shows attempts without the address that was called', async (t) => {
    const { server, exporter } = await served(t, { collectors: ['default'] });
    const { exporters } = server.plugins['webhook-exporter'];
    const { deliveryId } = await exporters.test(exporter.id);
    const token = await keyFor(server, ['deliveries:read']);
    const { payload } = await server.inject({ url: `${DELIVERIES}/${deliveryId}`, headers: { token } });
    t.match(JSON.parse(payload).history, [{ number: 1, code: 'connect_refused', status: null, timings: { total: Number }, late: false }]);
    t.notMatch(payload, /127\.0\.0\.1/);
});

t.test('refuses keys without the scope, keys of some workspaces and whoever has none', async (t) => {
    const { server } = await served(t);
    const event = { kind: KIND, body: sample };
    const others = async (...scopes: ApiKeyScope[]) => await keyFor(server, ['inventory:read', 'records:write', 'admin', ...scopes]);
    t.match(json(await publishing(server, await others('deliveries:read'), event)), { statusCode: 403, message: /events:publish/ });
    t.equal((await publishing(server, 'none', event)).statusCode, 403);
    const limited = await keyFor(server, ['events:publish', 'deliveries:read'], { workspaces: [1] });
    t.match(json(await publishing(server, limited, event)), { statusCode: 403, message: /workspaces/ });
    for (const [token, message] of [
        [await others('events:publish'), /deliveries:read/],
        [limited, /workspaces/],
    ] as const) {
        for (const url of [DELIVERIES, `${DELIVERIES}/x`]) {
            t.match(json(await server.inject({ url, headers: { token } })), { statusCode: 403, message }, url);
        }
    }
    t.strictSame(await server.plugins['webhook-exporter'].deliveries.list(), []);
});

t.test('asks for the licence where it is given one', async (t) => {
    const { server } = await served(t, { routes: { prefix: '/hooks', license: { valid: async () => false } } });
    const token = await keyFor(server, ['deliveries:read']);
    t.equal((await server.inject({ url: '/hooks/deliveries', headers: { token } })).statusCode, 403);
    t.equal((await server.inject({ url: DELIVERIES, headers: { token } })).statusCode, 404);
});

t.test('answers 503 while the store is away, and logs why', async (t) => {
    const stores = memoryWebhooks();
    const list = () => Promise.reject(new ScanwireError('UNAVAILABLE', 'The database at 192.0.2.1 is away'));
    const { server } = await served(t, {}, { ...stores, deliveries: { ...stores.deliveries, list } });
    const logged: unknown[] = [];
    server.events.on({ name: 'request', channels: 'app' }, (_, { tags, error }) => logged.push(tags, (error as Error).message));
    const { payload, statusCode } = await server.inject({
        url: DELIVERIES,
        headers: { token: await keyFor(server, ['deliveries:read']) },
    });
    t.equal(statusCode, 503);
    t.notMatch(payload, /idempotency/, 'who reads repeats nothing');
    t.notMatch(payload, /192\.0\.2\.1/);
    t.strictSame(logged, [['scanwire', 'webhook-exporter', 'error'], 'The database at 192.0.2.1 is away']);
});

t.test('answers 503 within 10 s where the store says nothing of an event', async (t) => {
    const stores = memoryWebhooks();
    let asked = (): void => undefined;
    const silent = new Promise<void>((resolve) => {
        asked = resolve;
    });
    const accept = (): Promise<never> => {
        asked();
        return new Promise(() => undefined);
    };
    const { server } = await served(t, {}, { ...stores, deliveries: { ...stores.deliveries, accept } });
    const key = await keyFor(server, ['events:publish']);
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    const answer = publishing(server, key, { kind: KIND, body: sample, rules: 'library' });
    await silent;
    mock.timers.tick(10_000);
    t.match(json(await answer), { statusCode: 503, code: 'UNAVAILABLE' });
});

t.test('says with a 503 what a repeat of the event does, with an idempotency key and without one', async (t) => {
    const stores = memoryWebhooks();
    const accept = () => Promise.reject(new ScanwireError('UNAVAILABLE', 'The database at 192.0.2.1 is away'));
    const { server } = await served(t, {}, { ...stores, deliveries: { ...stores.deliveries, accept } });
    const token = await keyFor(server, ['events:publish', 'deliveries:read']);
    const event = { kind: KIND, body: sample };
    const harmless = {
        statusCode: 503,
        code: 'UNAVAILABLE',
        message: /try again later, with the same idempotency key: the event is accepted once$/,
    };
    t.match(json(await publishing(server, token, { ...event, idempotencyKey: 'one' })), harmless);
    t.match(json(await publishing(server, token, event, { 'idempotency-key': 'one' })), harmless);
    const unknown = {
        statusCode: 503,
        message: /The event had no idempotency key: it may have been accepted, and would be another one if it came again$/,
    };
    t.match(json(await publishing(server, token, event)), unknown);
});

t.test('needs the strategy that it names', async (t) => {
    const server = hapiServer();
    const options = { stores: memoryWebhooks(), queue: memoryQueue(), keyRing: ring, routes: { auth: 'none' } };
    await t.rejects(server.register({ plugin, options }), { code: 'MISCONFIGURED', field: 'auth', message: /routes\.auth/ });
});

t.test('tells anybody in one word whether it lives and is ready', async (t) => {
    const stores = memoryWebhooks();
    let away = false;
    const now = () => (away ? Promise.reject(new Error('192.0.2.1 refused')) : stores.deliveries.now());
    const { server } = await served(t, { health: { prefix: '/own' } }, { ...stores, deliveries: { ...stores.deliveries, now } });
    const get = async (name: string) => json(await server.inject(`/own/health/${name}`));
    t.strictSame(await get('live'), { statusCode: 200, status: 'ok' });
    t.strictSame(await get('ready'), { statusCode: 200, status: 'ok' });
    away = true;
    t.strictSame(await get('ready'), { statusCode: 503, status: 'unavailable' });
    t.strictSame(await get('live'), { statusCode: 200, status: 'ok' });
    away = false;
    await server.stop();
    t.strictSame(await get('ready'), { statusCode: 503, status: 'unavailable' });
});

t.test('has none of these routes unless asked', async (t) => {
    const { server } = await served(t, { routes: undefined, health: undefined } as object);
    t.strictSame(server.table(), []);
});
