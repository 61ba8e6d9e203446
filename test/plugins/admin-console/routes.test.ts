import { buffer } from 'node:stream/consumers';
import { inspect } from 'node:util';
import type { Server, ServerInjectResponse } from '@hapi/hapi';
import type Joi from 'joi';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { endpoints, type Input, type OperationName, type Output } from '../../../plugins/admin-console/operations.ts';
import { admin, host, investigation, receiver, register, systemOf, VALID_LICENSE } from './host.ts';

const names = Object.keys(endpoints) as OperationName[];
const json = { ...admin, 'content-type': 'application/json' };
const ANY_ID = '6e1c1f1c-6b1f-4a53-9a51-6f1c2a9d1b11';
const PREFIX = '/admin-console';

/** The console over everything, started. */
async function served(t: Test): Promise<Server> {
    const server = await host();
    await register(server, { system: systemOf(server) });
    await server.initialize();
    t.teardown(() => server.stop());
    return server;
}

/** Asks as an administrator and holds the answer against the schema that the route documents. */
async function ask<Name extends OperationName>(t: Test, server: Server, name: Name, input: Input<Name>): Promise<Output<Name>> {
    const { method, path, streamed, downloads } = endpoints[name];
    const fields = new Map(Object.entries(input));
    const source = fields.get('source') as AsyncIterable<Uint8Array> | undefined;
    fields.delete('source');
    const url = path.replace(/\{(\w+)\}/, (_, field: string) => {
        const value = String(fields.get(field));
        fields.delete(field);
        return value;
    });
    const inQuery = method === 'GET' || method === 'DELETE' || streamed === true;
    const query = inQuery ? `?${new URLSearchParams(JSON.parse(JSON.stringify(Object.fromEntries(fields))))}` : '';
    const { statusCode, payload, headers } = await server.inject({
        method,
        url: `${PREFIX}${url}${query}`,
        headers: { ...admin, ...(source !== undefined && { 'content-type': 'application/x-ndjson' }) },
        ...(source !== undefined && { payload: await buffer(source) }),
        ...(!inQuery && { payload: Object.fromEntries(fields) }),
    });
    t.equal(statusCode, 200, `${name}: ${payload}`);
    const type = downloads ? 'application/x-ndjson' : 'application/json; charset=utf-8';
    t.match(headers, { 'content-type': type, 'cache-control': 'no-store' });
    const answer: unknown = downloads ? payload : JSON.parse(payload);
    const schema = server.lookup(`admin-console.${name}`)?.settings.response?.schema as Joi.Schema;
    t.equal(schema.validate(answer).error, undefined, `${name} answers as documented`);
    return answer as Output<Name>;
}

t.test('does every operation, and answers each as its route documents', async (t) => {
    const server = await served(t);
    const asked = new Set<OperationName>();
    const as = <Name extends OperationName>(name: Name, input: Input<Name>): Promise<Output<Name>> => {
        asked.add(name);
        return ask(t, server, name, input);
    };

    const key = await as('createKey', { name: ' nightly job ' });
    t.match(key, { name: 'nightly job', key: /^scw_/ });
    t.same(await as('revealKey', { id: key.id }), key);
    t.same(await as('revokeKey', { id: key.id }), { id: key.id, revoked: true });
    t.match(await as('listKeys', {}), [{ id: key.id, scopes: ['inventory:read'], revokedAt: String }]);
    const { id: writer } = await as('createKey', { name: 'writer', scopes: ['records:write', 'admin'] });
    t.match((await as('listKeys', {})).at(-1), { id: writer, scopes: ['records:write', 'admin'], workspaces: null, expiresAt: null });
    const expiresAt = '2999-01-31T00:00:00.000Z' as unknown as Date;
    const { id: partner } = await as('createKey', { name: 'partner', workspaces: [7, 2], expiresAt });
    t.match((await as('listKeys', {})).at(-1), { id: partner, workspaces: [7, 2], expiresAt, expired: false });

    const url = await receiver(t);
    const { id, secret } = await as('createExporter', { url, name: 'Ours', headers: [['Authorization', 'Bearer x']] });
    t.type(secret, 'string');
    const test = { attempt: { code: 'delivered', status: 204 } };
    t.match(await as('startExporter', { id }), { state: 'running', test, held: { count: 0, more: false } });
    t.match(await as('updateExporter', { id, name: 'Renamed' }), { name: 'Renamed', headerNames: ['Authorization'] });
    t.match(await as('listExporters', {}), [{ id }]);
    t.same(await as('listExporters', { owner: 'ann' }), []);
    t.match(await as('summarizeExporters', {}), [{ id, name: 'Renamed', state: 'running', consecutiveFailures: 0 }]);
    t.match(await as('pageExporters', { limit: 1 }), [{ id, health: { breaker: 'closed' }, day: { length: 8 } }]);
    const shownUrl = `${new URL(url).origin}/${new URL(url).pathname === '/' ? '' : '…'}`;
    t.match(await as('showExporter', { id }), { name: 'Renamed', state: 'running', url: shownUrl });
    t.match(await as('showExporter', { id, showUrl: true }), { name: 'Renamed', url });
    t.match(await as('testExporter', { id }), { attempt: { code: 'delivered' } });
    const unheard = await as('testExporter', { id, wait: false });
    t.equal(unheard.attempt, null, 'not waited for');
    await until(async () => (await as('showDelivery', { id: unheard.deliveryId })).finishedAt !== null);
    t.match(await as('diagnose', {}), { healthy: true, findings: [{ part: 'store', state: 'ok', advice: null }] });
    t.match((await as('diagnoseExporter', { id })).findings.at(-1), { part: 'answer', state: 'ok' });

    const question = { id, kind: 'idr_investigation_created', body: investigation };
    t.same(await as('explainExporter', question), { wanted: true });
    t.match(JSON.parse((await as('previewExporter', question)).body), { title: 'One' });
    const draft = { id, kinds: ['idr_*'] };
    t.match(await as('previewDraft', { draft, kind: question.kind, body: investigation }), { wanted: true, body: /One/ });
    const published = await as('publishEvent', { kind: 'idr_investigation_created', body: investigation, rules: 'legacy' });
    const [deliveryId = ''] = published.deliveries;
    const { deliveries } = server.plugins['webhook-exporter'];
    await until(async () => (await deliveries.show(deliveryId)).state === 'delivered');
    t.match(await as('listDeliveries', { state: 'delivered', exporterId: id, limit: 10 }), { length: 6 });
    t.match(await as('listDeliveries', { outcome: 'delivered', exporterId: id }), { length: 6 });
    t.match(await as('listDeliveries', { outcome: 'connect_refused' }), { length: 0 });
    t.same(await as('countDeliveries', { kind: 'idr_investigation_created', exporterId: id }), { count: 1, more: false });
    t.match(await as('listDeliveries', { since: new Date(0), until: new Date(1) }), { length: 0 });
    const attempts = await as('listAttempts', { exporterId: id, outcome: 'delivered', since: new Date(0), limit: 2 });
    t.match(attempts, [{ id: `${deliveryId}:1`, deliveryId, kind: 'idr_investigation_created', code: 'delivered', status: Number }, {}]);
    t.notOk('responseBody' in (attempts[0] ?? {}), 'what receivers answered is shown with the delivery');
    t.match(await as('listAttempts', { deliveryId, after: `${deliveryId}:1` }), { length: 0 });
    t.same(await as('countAttempts', { exporterId: id }), { count: 6, more: false });
    const { slices } = await as('showActivity', { span: 'day', exporterId: id });
    t.equal(slices.length, 24);
    t.equal(
        slices.reduce((sum, { delivered }) => sum + delivered, 0),
        6,
    );
    const message = await as('showMessage', { id: deliveryId });
    t.match(message, { body: /investigationRrn/, bytes: Number, erasedAt: null, failure: null });
    t.match(message.headers?.join('\n'), 'Authorization,***');
    t.match(await as('showDelivery', { id: deliveryId }), { id: deliveryId, attempts: 1, history: [{ number: 1, code: 'delivered' }] });
    t.match(await as('replayDelivery', { id: deliveryId }), { id: deliveryId });
    await as('pauseExporter', { id });
    const unwanted = await as('publishEvent', { kind: 'idr_investigation_created', body: investigation });
    t.match(await as('discardDelivery', { id: unwanted.deliveries[0] ?? '' }), { state: 'cancelled', finishedAt: String });
    await as('resumeExporter', { id });
    const failed = { exporterId: id, failedSince: new Date(0) };
    t.same(await as('beginReplay', { ...failed, dryRun: true }), { total: 0 });
    const replay = await as('beginReplay', { ...failed, rate: 7 });
    t.match(replay, { id: String, failedSince: '1970-01-01T00:00:00.000Z', rate: 7, total: 0 });
    t.match(await as('beginReplay', { exporterId: id, held: true }), { failedSince: null, rate: 100 });
    t.match(await as('listReplays', {}), [{ failedSince: null }, { rate: 7 }]);
    t.match(await as('showReplay', { id: 'id' in replay ? replay.id : '' }), {
        id: String,
        failedSince: '1970-01-01T00:00:00.000Z',
        rate: 7,
        total: 0,
    });
    t.match(await as('cancelReplay', { id: 'id' in replay ? replay.id : '' }), { rate: 7, finishedAt: String });
    const { eventId } = published;
    t.match(await as('eraseEvent', { id: eventId }), { id: eventId, erasedAt: String, ended: Number });
    t.match(await as('showEvent', { id: eventId }), { id: eventId, kind: 'idr_investigation_created', erasedAt: String });
    t.match(await as('pauseExporter', { id }), { state: 'running', pausedAt: String });
    t.match(await as('resumeExporter', { id }), { state: 'running', pausedAt: null });
    const schedule = [5_000, 120_000];
    t.match(await as('updateExporter', { id, schedule }), { schedule });
    t.match(await as('showExporter', { id }), { schedule });
    t.notOk('schedule' in (await as('updateExporter', { id, schedule: null })), 'shown only while it has one of its own');
    t.match(await as('stopExporter', { id }), { state: 'stopped' });
    t.same(await as('removeExporter', { id }), { id, removed: true });
    t.match(await ask(t, server, 'createExporter', { url, start: true }), { secret: String, test: { attempt: { code: 'delivered' } } });

    t.match(await as('showLicense', {}), { valid: false });
    t.match(await as('installLicense', { text: VALID_LICENSE }), { valid: true, holder: 'Acme' });
    t.match(await as('trustLicense', { text: 'key' }), { valid: true });
    const source = (async function* () {
        yield Buffer.from('{"address":"192.0.2.1"}\n');
    })();
    t.match(await as('importScan', { workspace: 'lab', source }), {
        workspace: { name: 'lab' },
        hosts: { new: 1, changed: 0, unchanged: 0, gone: 0, refused: 0 },
    });
    t.match(JSON.parse((await as('exportWorkspace', { workspace: 'lab', format: 'jsonl' })) as unknown as string), {
        address: '192.0.2.1',
        services: [],
    });
    t.match(await as('listWorkspaces', {}), [{ name: 'default' }, { name: 'lab' }]);
    t.match(await as('showWorkspace', { name: 'lab' }), { name: 'lab', hosts: 1, services: 0, notes: 0, vulns: 0 });
    const host = { address: '192.0.2.1', services: [] };
    t.match(await as('listHosts', { workspace: 'lab', address: '192.0.2.0/24', services: true, limit: 1 }), { hosts: [host], next: null });
    t.match(await as('showHost', { workspace: 'lab', address: '192.0.2.1' }), { ...host, notes: [], vulns: [] });
    const limits = { boundary: '192.0.2.0/24', limit_to_network: true };
    t.match(await as('updateWorkspace', { name: 'default', ...limits }), { name: 'default', ...limits });
    const [{ id: hostId } = { id: 0 }] = (await as('listHosts', { workspace: 'lab' })).hosts;
    t.same(await as('moveHosts', { ids: [hostId], to: 'default' }), { hosts: 1 });
    t.same(await ask(t, server, 'moveHosts', { ids: [hostId], to: 'lab' }), { hosts: 1 });
    t.same(await as('removeHosts', { workspace: 'lab', address: '192.0.2.1', dryRun: true }), { hosts: 1 });
    for (const [time, rule] of [
        ['2999-01-31T00:00:00Z', /NotSeenSince must not be later than now/],
        ['2025-02-29', /notSeenSince must be on a day that its month has/],
        ['2024-11-31T00:00:00Z', /notSeenSince must be on a day that its month has/],
    ] as const) {
        const payload = { workspace: 'lab', notSeenSince: time };
        const refused = await server.inject({ method: 'POST', url: `${PREFIX}/hosts/expire`, headers: admin, payload });
        t.equal(refused.statusCode, 400, time);
        t.match(refused.payload, rule);
    }
    const notSeenSince = new Date().toISOString() as unknown as Date;
    t.same(await as('expireHosts', { workspace: 'lab', notSeenSince, dryRun: true }), { hosts: 1 });
    t.same(await as('expireHosts', { workspace: 'lab', notSeenSince }), { hosts: 1 });
    t.match(await as('renameWorkspace', { name: 'lab', to: 'attic' }), { id: 2, name: 'attic' });
    for (const [from, message] of [
        ['attic', /There is a workspace \\"default\\" already/],
        ['default', /its name stays/],
    ] as const) {
        const url = `${PREFIX}/workspaces/${from}/rename`;
        const taken = await server.inject({ method: 'POST', url, headers: admin, payload: { to: 'default' } });
        t.match([taken.statusCode, taken.payload], [409, message]);
    }
    t.same(await as('removeWorkspace', { name: 'attic' }), { hosts: 0 });
    const kept = await server.inject({ method: 'DELETE', url: `${PREFIX}/workspaces/default`, headers: admin });
    t.match([kept.statusCode, kept.payload], [409, /only its hosts can be removed/]);
    t.same(await as('rotateKeyRing', {}), { sealed: 0, unopened: [], next: 'exporters' });
    t.same(await as('rotateKeyRing', { after: 'exporters' }), { sealed: 0, unopened: [], next: null });
    t.same(await as('migrate', {}), { applied: ['0001'] });
    t.match(await as('listAudit', { limit: 1 }), [{ actor: 'ada', operation: 'migrate', subject: null, outcome: 'done' }]);

    t.same([...asked].sort(), [...names].sort(), 'every operation was asked for');
});

/** A request to each route, one that would be good for those that take no body. */
async function everyRoute(server: Server, headers: Record<string, string>): Promise<Record<string, ServerInjectResponse>> {
    const answers: Record<string, ServerInjectResponse> = {};
    for (const name of names) {
        const { method, path } = endpoints[name];
        answers[name] = await server.inject({
            method,
            url: PREFIX + path.replace(/\{\w+\}/, ANY_ID),
            headers: { 'content-type': 'application/json', ...headers },
        });
    }

    return answers;
}

t.test('takes how long the secret before a new one goes on signing', async (t) => {
    const server = await served(t);
    const settings = { url: 'https://127.0.0.1:9/', signatures: ['standard-webhooks'] } as const;
    const { id } = await ask(t, server, 'createExporter', settings);
    const question = { id, kind: 'idr_investigation_created', body: investigation };
    const signatures = async (): Promise<number> => {
        const { headers } = await ask(t, server, 'previewExporter', question);
        return String(new Map(headers).get('webhook-signature')).split(' ').length;
    };
    for (const [overlap, count] of [
        [{ overlap: 0 }, 1],
        [{ overlap: 7_200_000 }, 2],
        [{}, 3],
    ] as const) {
        await ask(t, server, 'updateExporter', { id, secret: `secret of ${count}`, ...overlap });
        t.equal(await signatures(), count, JSON.stringify(overlap));
    }
});

t.test('lets nobody in but whom the host authorizes, on every route', async (t) => {
    const server = await served(t);
    for (const [name, { statusCode }] of Object.entries(await everyRoute(server, {}))) {
        t.equal(statusCode, 401, name);
    }

    for (const [name, { statusCode, payload }] of Object.entries(await everyRoute(server, { session: 'eve' }))) {
        t.equal(statusCode, 403, name);
        t.match(JSON.parse(payload), { error: { code: 'FORBIDDEN', message: String } });
    }

    const { key } = await server.plugins['token-auth'].create('rest');
    for (const [name, { statusCode }] of Object.entries(await everyRoute(server, { token: key }))) {
        t.equal(statusCode, 401, `${name} with a key of the REST API`);
    }
});

t.test('takes anything but true for a refusal, an error too, and logs the error', async (t) => {
    const answers: readonly (() => unknown)[] = [
        () => false,
        () => undefined,
        () => 'yes',
        async () => false,
        () => {
            throw new Error('the directory is down');
        },
    ];
    for (const authorize of answers) {
        const server = await host();
        const logged: string[] = [];
        server.events.on({ name: 'request', channels: 'app' }, (_, { error }) => logged.push((error as Error).message));
        await register(server, { system: systemOf(server), authorize: authorize as () => boolean });
        const { statusCode, payload } = await server.inject({ url: `${PREFIX}/keys`, headers: admin });
        t.equal(statusCode, 403);
        t.notMatch(payload, 'directory');
        t.same(logged, String(authorize).includes('throw') ? ['the directory is down'] : []);
    }
});

t.test('refuses bad input with the field at fault, and never repeats it', async (t) => {
    const server = await served(t);
    const cases: readonly [OperationName, Record<string, unknown> | null, string | undefined, string?][] = [
        ['createKey', null, undefined],
        ['createKey', {}, 'name'],
        ['createKey', { name: 's3cret\u0007' }, 'name'],
        ['createKey', { name: 'a', scopes: ['s3cret'] }, 'scopes[0]'],
        ['createKey', { name: 'a', scopes: [] }, 'scopes'],
        ['createKey', { name: 'a', workspaces: [] }, 'workspaces'],
        ['createKey', { name: 'a', workspaces: ['s3cret'] }, 'workspaces[0]'],
        ['createKey', { name: 'a', expiresAt: 's3cret' }, 'expiresAt'],
        ['createKey', { name: 'a', expiresAt: '2001-01-01T00:00:00Z' }, 'expiresAt'],
        ['createKey', { name: 'a', more: 's3cret' }, 'more'],
        ['createExporter', { name: 's3cret' }, 'url'],
        ['createExporter', { url: 'https://a.test', secret: ['s3cret'] }, 'secret'],
        ['createExporter', { url: 'https://a.test', trust: 's3cret' }, 'trust'],
        ['createExporter', { url: 'https://a.test', headers: [['Authorization', { s3cret: 1 }]] }, 'headers[0][1]'],
        ['createExporter', { url: 'https://a.test', start: 's3cret' }, 'start'],
        ['updateExporter', { secret: 7 }, 'secret'],
        ['updateExporter', { secret: 'a', overlap: 's3cret' }, 'overlap'],
        ['updateExporter', { secret: 'a', overlap: 721 * 3_600_000 }, 'overlap'],
        ['startExporter', { s3cret: true }, 's3cret'],
        ['publishEvent', { body: 's3cret' }, 'body'],
        ['publishEvent', { body: {}, rules: 's3cret' }, 'rules'],
        ['installLicense', { text: ['s3cret'] }, 'text'],
        ['listDeliveries', null, 'limit', '?limit=s3cret'],
        ['listDeliveries', null, 'state', '?state=s3cret'],
        ['listDeliveries', null, 'outcome', '?outcome=s3cret'],
        ['listDeliveries', null, 'after', '?after=a&after=s3cret'],
        ['listAttempts', null, 'limit', '?limit=s3cret'],
        ['listAttempts', null, 'outcome', '?outcome=s3cret'],
        ['countAttempts', null, 'since', '?since=s3cret'],
        ['listKeys', null, 'more', '?more=s3cret'],
        ['moveHosts', { ids: [], to: 'lab' }, 'ids'],
        ['moveHosts', { ids: ['s3cret'], to: 'lab' }, 'ids[0]'],
        ['updateWorkspace', { boundary: 's3cret' }, 'boundary'],
        ['importScan', null, 'workspace', '?workspace=a&workspace=s3cret'],
    ];
    for (const [name, payload, field, query = ''] of cases) {
        const { method, path } = endpoints[name];
        const answer = await server.inject({
            method,
            url: PREFIX + path.replace(/\{\w+\}/, ANY_ID) + query,
            headers: json,
            ...(payload !== null && { payload }),
        });
        t.equal(answer.statusCode, 400, `${name} ${JSON.stringify(payload)} ${query}: ${answer.payload}`);
        const { error } = JSON.parse(answer.payload) as { error: { code: string; field?: string; message: string } };
        t.equal(error.code, 'INVALID_INPUT');
        t.equal(error.field, field);
        t.notMatch(field === 's3cret' ? '' : answer.payload, 's3cret');
    }
});

t.test('refuses bodies of another type, too long, or no JSON', async (t) => {
    const server = await served(t);
    const url = `${PREFIX}/keys`;
    const cases: readonly [Record<string, string>, string | undefined, number, string?][] = [
        [{ 'content-type': 'application/json' }, '{"name":', 400],
        [{ 'content-type': 'application/json' }, '{"name":"a","__proto__":{}}', 400],
        [{ 'content-type': 'application/json' }, JSON.stringify('x'.repeat(4 * 1024 * 1024)), 413],
        [{ 'content-type': 'application/x-www-form-urlencoded' }, 'name=a', 415],
        [{ 'content-type': 'text/plain' }, '{"name":"a"}', 415],
        [{}, '{"name":"a"}', 415],
        [{ 'content-type': 'application/json', 'content-encoding': 'gzip' }, '{"name":"a"}', 415],
        [{}, undefined, 415, `${PREFIX}/migrations`],
        [{ 'content-type': 'multipart/form-data; boundary=x' }, '--x--', 415, `${PREFIX}/import?workspace=a`],
        [{}, 'a', 415, `${PREFIX}/import?workspace=a`],
    ];
    for (const [headers, payload, status, path = url] of cases) {
        const answer = await server.inject({ method: 'POST', url: path, headers: { ...admin, ...headers }, ...(payload && { payload }) });
        t.equal(answer.statusCode, status, `${JSON.stringify(headers)} ${payload?.slice(0, 20)}`);
        t.match(JSON.parse(answer.payload), { error: { code: 'INVALID_INPUT', message: String } });
    }
});

t.test('is closed to other sites where the server opens everything', async (t) => {
    const server = await host({ routes: { cors: { credentials: true } } });
    await register(server, { system: systemOf(server) });
    const headers = { ...admin, origin: 'https://evil.example', 'access-control-request-method': 'DELETE' };
    for (const [name, { headers: answered }] of Object.entries(await everyRoute(server, headers))) {
        t.notOk('access-control-allow-origin' in answered, name);
    }

    const preflight = await server.inject({ method: 'OPTIONS', url: `${PREFIX}/keys/${ANY_ID}`, headers });
    t.notOk('access-control-allow-origin' in preflight.headers);
});

t.test('passes on what the system refuses, and hides what fails', async (t) => {
    const server = await host();
    const keys = { ...server.plugins['token-auth'], list: () => Promise.reject(new Error('password of the database')) };
    await register(server, { system: { keys, webhooks: server.plugins['webhook-exporter'] } });
    const logged: string[] = [];
    server.events.on({ name: 'request', channels: 'app' }, (_, { error, tags }) => logged.push(`${tags} ${(error as Error).message}`));

    const failed = await server.inject({ url: `${PREFIX}/keys`, headers: admin });
    t.equal(failed.statusCode, 500);
    t.same(JSON.parse(failed.payload), { error: { code: 'INTERNAL', message: 'The server failed; its log says why' } });
    t.same(logged, ['scanwire,admin-console,error password of the database']);

    const unknown = await server.inject({ url: `${PREFIX}/keys/nonsense`, headers: admin });
    t.equal(unknown.statusCode, 404);
    t.same(JSON.parse(unknown.payload), { error: { code: 'NOT_FOUND', field: 'id', message: 'Unknown API key' } });

    const { id } = await server.plugins['token-auth'].create('a');
    const revoke = { method: 'DELETE', url: `${PREFIX}/keys/${id}`, headers: admin } as const;
    t.equal((await server.inject(revoke)).statusCode, 200);
    t.match(JSON.parse((await server.inject(revoke)).payload), { error: { code: 'CONFLICT' } });
});

t.test('writes no secret to the log of the server', async (t) => {
    const server = await host();
    const { webhooks } = systemOf(server);
    const exporters = { ...webhooks.exporters, update: () => Promise.reject(new Error('no room on the disk')) };
    await register(server, { system: { webhooks: { ...webhooks, exporters } } });
    const logged: unknown[] = [];
    const note = (...event: unknown[]): void => void logged.push(event.slice(1));
    server.events.on({ name: 'request', channels: ['app', 'error', 'internal'] }, note);
    server.events.on('log', note);
    for (const payload of [
        { url: 'https://a.test/?key=s3cret', secret: 's3cret', headers: [['Authorization', 's3cret']], trust: 's3cret' },
        { url: 's3cret', secret: 's3cret' },
        { url: 'http://10.0.0.1/?s3cret', headers: [['Host', 's3cret']] },
    ]) {
        const { statusCode } = await server.inject({ method: 'POST', url: `${PREFIX}/exporters`, headers: json, payload });
        t.equal(statusCode, 400);
    }

    const payload = { secret: 's3cret' };
    const { statusCode } = await server.inject({ method: 'PATCH', url: `${PREFIX}/exporters/${ANY_ID}`, headers: json, payload });
    t.equal(statusCode, 500);
    t.match(inspect(logged, { depth: 20 }), 'no room on the disk');
    t.notMatch(inspect(logged, { depth: 20 }), 's3cret');
});

interface Described {
    readonly type?: string;
    readonly flags?: { readonly presence?: string; readonly description?: string };
    readonly rules?: readonly { readonly name: string }[];
    readonly keys?: Readonly<Record<string, Described>>;
    readonly items?: readonly Described[];
}

/** Every schema in a schema, with its path. */
function* within(schema: Described, path: string): Generator<readonly [string, Described]> {
    yield [path, schema];
    for (const [key, below] of Object.entries(schema.keys ?? {})) {
        yield* within(below, `${path}.${key}`);
    }

    for (const item of schema.items ?? []) {
        yield* within(item, `${path}[]`);
    }
}

t.test('documents every route with schemas that OpenAPI can say', async (t) => {
    const server = await served(t);
    for (const name of names) {
        const route = server.lookup(`admin-console.${name}`);
        const { description, tags, validate, response } = route?.settings ?? {};
        t.match({ description, tags }, { description: /^[A-Z].+[^.]$/, tags: ['api', 'admin-console'] }, name);
        t.equal(/\{/.test(route?.path ?? ''), validate?.params != null, `${name} has a schema of its parameters`);
        const statuses = Object.values(response?.status ?? {});
        t.ok(statuses.length > 3, `${name} documents its refusals`);
        for (const schema of [
            validate?.params,
            validate?.query,
            validate?.payload,
            response?.schema,
            ...statuses,
        ] as (Joi.Schema | null)[]) {
            if (schema == null) {
                continue;
            }

            // That there are no other days than those of the calendar is what the format of a date says.
            const unsayable = Array.from(within(schema.describe() as Described, name)).filter(
                ([, { type, flags, rules = [] }]) =>
                    type === 'any' || flags?.presence === 'forbidden' || (type !== 'date' && rules.some((rule) => rule.name === 'custom')),
            );
            t.same(unsayable, []);
            const standard = (schema as unknown as { '~standard': { jsonSchema: { output(options: object): object } } })['~standard'];
            const type = endpoints[name].downloads && schema === response?.schema ? 'string' : /object|array/;
            t.match(standard.jsonSchema.output({ target: 'draft-2020-12' }), { type }, name);
        }
    }
});
