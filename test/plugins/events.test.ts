import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { server as hapiServer, type Server } from '@hapi/hapi';
import { fastify } from 'fastify';
import Joi from 'joi';
import t, { type Test } from 'tap';
import { only, until } from '../../adapters/contract/assertions.ts';
import { at, WebhookBench } from '../../adapters/contract/webhooks/fixture.ts';
import { memoryApiKeys, memoryInventory, memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import type { Workspace } from '../../lib/inventory/resources.ts';
import { newApiKey } from '../../lib/keys/key-form.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { alwaysLicensed } from '../../lib/license/index.ts';
import { DELIVERY_EVENTS } from '../../lib/webhooks/observing/emitted-events.ts';
import { EVENT_TYPES, redact, type ScanwireEvent } from '../../plugins/log-and-events.ts';
import { plugin as metrics } from '../../plugins/metrics/index.ts';
import { plugin as restApiV2 } from '../../plugins/rest-api-v2/index.ts';
import { plugin as tokenAuth } from '../../plugins/token-auth/index.ts';
import { plugin as webhookExporter } from '../../plugins/webhook-exporter/index.ts';

const ring = keyRing({ current: 'k1', keys: { k1: randomBytes(32) } });
const kinds = ['scan_finished'].map((name) => ({ name, schema: Joi.object({ workspace: Joi.string() }) }));

function heardBy(server: Server, channels?: string[]): ScanwireEvent[] {
    const heard: ScanwireEvent[] = [];
    const listener = (event: ScanwireEvent): void => void heard.push(event);
    server.events.on(channels === undefined ? 'scanwire' : { name: 'scanwire', channels }, listener);
    return heard;
}

async function exporting(
    t: Test,
    { instance, stores = memoryWebhooks() }: { instance?: string; stores?: ReturnType<typeof memoryWebhooks> } = {},
): Promise<Server> {
    const server = hapiServer({ debug: false });
    const options = { stores, queue: memoryQueue(), keyRing: ring, egress: { allow: ['127.0.0.0/8'] }, kinds };
    await server.register({ plugin: webhookExporter, options: { ...options, ...(instance !== undefined && { instance }) } });
    await server.initialize();
    t.teardown(() => server.stop());
    return server;
}

/** A receiver that answers with these statuses, one after the other, and then with the last one. */
async function receiver(t: Test, ...statuses: number[]): Promise<string> {
    const server = createServer((request, response) => {
        request.resume();
        response.writeHead((statuses.length > 1 ? statuses.shift() : statuses[0]) ?? 204).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

t.test('tells what attempts came to, to who listens for all or for some of it', async (t) => {
    const server = await exporting(t);
    const all = heardBy(server, [...DELIVERY_EVENTS]);
    const accepted = heardBy(server, ['event.accepted']);
    const failed = heardBy(server, ['delivery.failed', 'delivery.exhausted']);
    const { exporters, publish } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: await receiver(t, 204, 204, 500, 410) });
    await exporters.start(exporter.id);
    const first = await publish('scan_finished', { workspace: 'one' });
    await until(() => all.length === 2);
    const { eventId } = first;
    const notice = {
        type: 'event.accepted',
        plugin: 'webhook-exporter',
        eventId,
        kind: 'scan_finished',
        deliveries: 1,
        inTransaction: false,
    };
    t.same(accepted, [notice]);
    t.match(all, [
        { type: 'delivery.delivered', plugin: 'webhook-exporter', kind: 'test', singleAttempt: true, attempt: 1, exporterId: exporter.id },
        {
            type: 'delivery.delivered',
            deliveryId: first.deliveries[0],
            eventId: first.eventId,
            kind: 'scan_finished',
            singleAttempt: false,
            collector: 'default',
            code: 'delivered',
            status: 204,
            detail: 'Answered 204',
        },
    ]);

    await publish('scan_finished', { workspace: 'two' });
    await until(() => failed.length === 1);
    await publish('scan_finished', { workspace: 'three' });
    await until(() => failed.length === 2);
    t.match(failed, [
        { type: 'delivery.failed', code: 'server_error', status: 500 },
        { type: 'delivery.exhausted', code: 'gone', status: 410 },
    ]);
    t.equal((await exporters.get(exporter.id)).state, 'stopped');
});

t.test('tells of a delivery that it finds to end the processes that send it', async (t) => {
    let time = at(0);
    const setTime = (to: Date): void => {
        time = to;
    };
    const stores = memoryWebhooks({ clock: () => time });
    const bench = new WebhookBench({ ...stores, setTime });
    const session = { id: randomUUID(), process: 'one that dies', slots: {} };
    const exporterId = randomUUID();
    await bench.addExporter({ id: exporterId, sealedSecret: ring.seal('s', `exporter:${exporterId}`) });
    const [deliveryId = ''] = await bench.publish();
    const { event } = only(await bench.claimDue());
    for (let hour = 1; hour < 20; hour += 1) {
        await bench.setTime(at(hour * 3_600_000));
        await bench.deliveries.sweep({ requeueAfter: 1_000_000, limit: 9 });
        const now = at(hour * 3_600_000 + 60_000);
        await bench.dispatch({ now });
        await bench.deliveries.keepAlive(session, 60_000);
        await bench.claim([deliveryId], now, session.id);
    }
    const server = await exporting(t, { stores });
    await server.register({ plugin: metrics, options: { auth: false } });
    const heard = heardBy(server);
    await stores.deliveries.endSessions([session.id]);
    await until(() => heard.length === 1);
    t.match(heard, [
        {
            type: 'delivery.poisoned',
            plugin: 'webhook-exporter',
            deliveryId,
            eventId: event.id,
            kind: event.kind,
            exporterId,
            collector: 'default',
            attempt: 20,
            singleAttempt: false,
            latency: null,
            code: 'interrupted',
            status: null,
        },
    ]);
    t.match(await server.plugins['webhook-exporter'].deliveries.list({ state: 'poisoned' }), [{ id: deliveryId }]);
    t.match((await server.inject('/metrics')).payload, 'scanwire_deliveries_ended_total{state="poisoned"} 1');
});

t.test('names the instance, and refuses a channel that nobody tells of', async (t) => {
    const server = await exporting(t, { instance: 'b' });
    const heard = heardBy(server);
    const { exporters } = server.plugins['webhook-exporter'].of('b');
    const { exporter } = await exporters.create({ url: await receiver(t, 204) });
    await exporters.test(exporter.id);
    await until(() => heard.length === 1);
    t.match(heard, [{ type: 'delivery.delivered', plugin: 'webhook-exporter', instance: 'b' }]);
    t.throws(() => heardBy(server, ['delivery.lost']), /channel/);
});

t.test('goes on sending whatever a listener throws, and writes it to the log', async (t) => {
    const server = await exporting(t);
    const logged: unknown[] = [];
    server.events.on('log', ({ tags, error }) => logged.push([tags, (error as Error).message]));
    server.events.on('scanwire', () => {
        throw new Error('in the listener');
    });
    const { exporters } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: await receiver(t, 204) });
    t.equal((await exporters.test(exporter.id)).attempt?.outcome?.code, 'delivered');
    await until(() => logged.length > 0);
    t.same(logged, [[['scanwire', 'webhook-exporter', 'error'], 'in the listener']]);
});

t.test('tells and goes on, whatever a listener of the log throws at, and has the process warn of it once', async (t) => {
    const warnings: (Error & { readonly detail?: string })[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on('warning', note);
    t.teardown(() => process.removeListener('warning', note));
    const server = await exporting(t);
    const messages: string[] = [];
    server.events.on('log', ({ error }) => messages.push((error as Error).message));
    server.events.on('log', () => {
        throw new Error('at whatever is written');
    });
    server.events.on({ name: 'scanwire', channels: ['event.accepted'] }, () => {
        throw new Error('in the listener');
    });
    const heard = heardBy(server, ['delivery.exhausted', 'exporter.stopped']);
    const { exporters, publish } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: await receiver(t, 410) });
    await exporters.start(exporter.id);
    const { eventId } = await publish('scan_finished', { workspace: 'one' });
    const isHeard = (type: string): boolean =>
        heard.some((event) => event.type === type && !('eventId' in event && event.eventId !== eventId));
    await until(() => isHeard('delivery.exhausted') && isHeard('exporter.stopped') && warnings.length > 0);
    t.same(messages, ['in the listener']);
    t.equal(warnings.length, 1);
    t.match(warnings, [{ message: 'A listener of the log of the server throws at what webhook-exporter writes', detail: /at whatever/ }]);
});

/** What the log of a server gets of us, as its tags and what stands beside them. */
function loggedBy(server: Server): [readonly string[], unknown][] {
    const logged: [readonly string[], unknown][] = [];
    server.events.on('log', ({ tags, error, data }) => logged.push([tags, error ?? data]));
    return logged;
}

t.test('writes to the log what becomes of an exporter and of deliveries that end in vain, and nothing of a try', async (t) => {
    const server = hapiServer({ debug: false });
    let ahead = 0;
    const stores = memoryWebhooks({ clock: () => new Date(Date.now() + ahead) });
    const options = { stores, queue: memoryQueue(), keyRing: ring, egress: { allow: ['127.0.0.0/8'] }, kinds, breakerAfter: 1 };
    await server.register({ plugin: webhookExporter, options: { ...options, instance: 'b' } });
    const logged = loggedBy(server);
    await server.initialize();
    t.teardown(() => server.stop());
    const { exporters, publish } = server.plugins['webhook-exporter'].of('b');
    const url = `${await receiver(t, 204, 500, 204, 410)}T0KEN/in?key=T0KEN`;
    const { exporter } = await exporters.create({ url, name: 'siem' });
    await exporters.start(exporter.id);
    const tags = (level: string) => ['scanwire', 'webhook-exporter', 'b', level];
    const of = `Exporter ${exporter.id} of collector default`;

    await publish('scan_finished', { workspace: 'one' });
    await until(() => logged.length === 1);
    t.match(logged, [[tags('warn'), new RegExp(`^${of} is failing: 1 failure in a row since \\S+Z, the last one server_error$`)]]);
    ahead = 60_000;
    await until(() => logged.length === 2);
    t.strictSame(logged[1], [tags('info'), `${of} has recovered: its receiver takes deliveries again`]);

    const last = await publish('scan_finished', { workspace: 'two' });
    await until(() => logged.length === 4);
    const ended = `Delivery ${last.deliveries[0]} to exporter ${exporter.id} has failed for good after attempt 1: gone, status 410; it is kept for replay`;
    t.strictSame(new Set(logged.slice(2).map(([, said]) => said)), new Set([ended, `${of} was stopped: The receiver answered 410 Gone`]));
    t.strictSame(
        logged.slice(2).map(([of]) => of),
        [tags('warn'), tags('warn')],
    );
    t.notMatch(JSON.stringify(logged), /T0KEN|127\.0\.0\.1/);
});

t.test('tells of keys, and of the first use only', async (t) => {
    const server = hapiServer();
    await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring } });
    server.route({ method: 'GET', path: '/', options: { auth: 'token' }, handler: () => 'in' });
    const heard = heardBy(server);
    const { create, revoke } = server.plugins['token-auth'];
    const { id, key } = await create('ci');
    for (const token of [key, newApiKey(), key]) {
        await server.inject({ url: '/', headers: { token } });
    }
    await revoke(id);
    await t.rejects(revoke(id));
    t.same(
        heard,
        ['key.created', 'key.used', 'key.revoked'].map((type) => ({ type, id, plugin: 'token-auth' })),
    );
});

t.test('makes, takes and revokes keys whatever listeners throw, at once or later, and writes it to the log', async (t) => {
    const server = hapiServer({ debug: false });
    await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring } });
    server.route({ method: 'GET', path: '/', options: { auth: 'token' }, handler: () => 'in' });
    const logged = loggedBy(server);
    server.events.on('scanwire', ({ type }: ScanwireEvent) => {
        throw new Error(`at ${type}`);
    });
    server.events.on('scanwire', async ({ type }: ScanwireEvent) => {
        await turn();
        throw new Error(`after ${type}`);
    });
    const heard = heardBy(server);
    const { create, revoke } = server.plugins['token-auth'];
    const { id, key } = await create('ci');
    t.equal((await server.inject({ url: '/', headers: { token: key } })).statusCode, 200);
    await revoke(id);
    await until(() => logged.length === 6);
    t.match(heard, [{ type: 'key.created' }, { type: 'key.used' }, { type: 'key.revoked' }]);
    t.same(
        logged.map(([tags, error]) => [tags, (error as Error).message]),
        heard.flatMap(({ type }) => ['at', 'after'].map((when) => [['scanwire', 'token-auth', 'error'], `${when} ${type}`])),
    );
});

t.test('tells of an answer that broke off, and not of a client who left', async (t) => {
    const workspace: Workspace | null = await memoryInventory().workspaces.get([], 1);
    let ends = (): void => {};
    const left = new Promise<void>((resolve) => {
        ends = resolve;
    });
    const listed = async function* (_: readonly number[], { signal }: { signal?: AbortSignal } = {}) {
        yield [workspace as Workspace];
        if (fails) {
            await turn();
            throw new Error('the database went away');
        }
        await once(signal as AbortSignal, 'abort');
        ends();
        throw new Error('aborted');
    };
    let fails = true;
    const store = { ...memoryInventory(), workspaces: { list: listed, get: async () => null } };
    const server = hapiServer({ host: '127.0.0.1', port: 0, debug: false });
    await server.register({ plugin: restApiV2, options: { store, license: alwaysLicensed(), auth: false, instance: 'b' } });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const heard = heardBy(server);
    const url = `${server.info.uri}/rest_api/v2/workspaces`;
    const begun = async (): Promise<IncomingMessage> => ((await once(get(url, { agent: false }), 'response')) as [IncomingMessage])[0];
    await t.rejects((await begun()).toArray());
    t.match(heard, [{ type: 'stream.cut', plugin: 'rest-api-v2', instance: 'b', path: '/rest_api/v2/workspaces', requestId: String }]);

    fails = false;
    const leaving = await begun();
    leaving.destroy();
    await left;
    await server.stop({ timeout: 100 });
    t.equal(heard.length, 1);
});

t.test('docs/observing.md has every event and every path to redact', async (t) => {
    const page = await readFile('docs/observing.md', 'utf8');
    const names = [...page.matchAll(/^\| ((?:`[a-z][\w.]*`(?:, )?)+) +\|/gm)].flatMap(([, cell = '']) =>
        cell.replaceAll('`', '').split(', '),
    );
    t.strictSame(names.toSorted(), [...EVENT_TYPES, ...redact, 'type'].toSorted());
});

t.test('every plugin writes to the log through the host, under its own name and in no other form', async (t) => {
    const names = readdirSync('plugins', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
    const writes = names.flatMap((name) => {
        const source = readFileSync(`plugins/${name}`, 'utf8');
        const plugin = name.includes('/') ? `'${name.split('/')[0]}'` : 'plugin';
        return Array.from(source.matchAll(/^.*\b(?:\w+\.log\(|console\.\w+\(|process\.std\w+\.write).*$/gm), ([line]) => ({
            name,
            line: line.trim(),
            plugin,
        }));
    });
    t.ok(writes.length >= 6, `${writes.length} places`);
    t.strictSame(
        writes.filter(
            ({ line, plugin }) => !/\b(?:server|request)\.log\(\[\.\.\.logTags\(/.test(line) || !line.includes(`logTags(${plugin}, `),
        ),
        [],
    );
});

t.test('writes no key to the log of the server', async (t) => {
    const server = hapiServer({ debug: false });
    const store = memoryApiKeys();
    let away = false;
    const failing = { ...store, findByDigest: (digest: string) => (away ? Promise.reject(new Error('away')) : store.findByDigest(digest)) };
    await server.register({ plugin: tokenAuth, options: { store: failing, keyRing: ring } });
    server.route({ method: 'GET', path: '/', options: { auth: 'token' }, handler: () => 'in' });
    const written: string[] = [];
    const note = ({ error, data, ...event }: { error?: unknown; data?: unknown }): void => {
        written.push(
            JSON.stringify({ ...event, data }),
            String((error as Error | undefined)?.stack),
            String((data as Error | undefined)?.stack),
        );
    };
    server.events.on('log', note);
    server.events.on({ name: 'request', channels: ['app', 'error', 'internal'] }, (_, event) => note(event));
    const heard = heardBy(server);
    const { id, key } = await server.plugins['token-auth'].create('ci');
    await server.inject({ url: '/', headers: { token: key } });
    away = true;
    t.equal((await server.inject({ url: '/', headers: { token: key } })).statusCode, 503);
    away = false;
    await server.plugins['token-auth'].revoke(id);
    t.equal((await server.inject({ url: '/', headers: { token: key } })).statusCode, 403);
    t.ok(written.length > 0);
    t.notMatch(written.join('\n') + JSON.stringify(heard), key.slice(4));
});

t.test('lists the paths of a request that a logger redacts', async (t) => {
    const lines: string[] = [];
    const stream = new Writable({
        write(chunk, _, done) {
            lines.push(String(chunk));
            done();
        },
    });
    const { log } = fastify({
        logger: { level: 'info', stream, redact: [...redact], serializers: { req: (request) => ({ ...(request as object) }) } },
    });
    const headers = { token: 'KEY-1', authorization: 'Bearer KEY-2', cookie: 'KEY-3', host: 'www.example.com' };
    log.info({ req: { method: 'POST', headers, query: { token: 'KEY-4', limit: '5' } } });
    t.match(lines.join(''), /www\.example\.com.*"limit":"5"/);
    t.notMatch(lines.join(''), /KEY-/);
    t.match(await readFile('docs/observing.md', 'utf8'), "redact: [...redact, 'req.url']", 'the URL holds a key in the query as well');
});
