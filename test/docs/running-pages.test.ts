import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Server as HapiServer, type Server } from '@hapi/hapi';
import { drizzle } from 'drizzle-orm/node-postgres';
import { pgTable, serial, text } from 'drizzle-orm/pg-core';
import Joi from 'joi';
import knex from 'knex';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import postgres from 'postgres';
import { keyRing, ScanwireError } from 'scanwire/keys';
import { alwaysLicensed } from 'scanwire/license';
import { memoryApiKeys, memoryQueue, memoryWebhooks } from 'scanwire/memory';
import { openEmbeddedDatabase } from 'scanwire/pglite';
import { plugin as restApiV2 } from 'scanwire/rest-api-v2';
import { plugin as tokenAuth } from 'scanwire/token-auth';
import { plugin as webhookExporter } from 'scanwire/webhook-exporter';
import { egressGuard, httpSender } from 'scanwire/webhooks';
import t, { type Test } from 'tap';
import { scanDatabase } from '../adapters/scan-database/scan-database.ts';
import { certificate } from '../support/certificates.ts';
import { installFor, pastedPages, ranPages, runPage } from '../support/pages.ts';
import { required } from '../support/required.ts';
import { testDatabase } from '../support/test-database.ts';

/* Every page run as it is pasted, in this process, on a host as the page presumes it. */

t.setTimeout(120_000);
const { url, drop } = await testDatabase();
const pool = new pg.Pool({ connectionString: url });
pool.on('error', () => {});
t.teardown(async () => {
    await pool.end();
    await drop();
});
process.env.DATABASE_URL = url;
process.env.SEALING_KEY = randomBytes(32).toString('base64');

const sealing = keyRing({ current: 'k1', keys: { k1: randomBytes(32) } });
const ANY_PORT = { 'port: 3790': 'port: 0' };

/** A host with keys. */
async function host(t: Test): Promise<Server> {
    const server = new HapiServer({ debug: false });
    await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: sealing } });
    t.teardown(() => server.stop());
    return server;
}

/** The same with an exporter's plugin. */
async function sendingHost(t: Test, options: object = {}): Promise<Server> {
    const server = await host(t);
    const plugin = { plugin: webhookExporter, options: { stores: memoryWebhooks(), queue: memoryQueue(), keyRing: sealing, ...options } };
    await server.register(plugin);
    return server;
}

const parts = () => {
    const guard = egressGuard({ allow: [] });
    return { stores: memoryWebhooks(), queue: memoryQueue(), keyRing: sealing, guard, sender: httpSender({ guard }) };
};

/** Status of a request with a key of the server. */
async function statusOf(server: Server, path: string): Promise<number> {
    const { key } = await server.plugins['token-auth'].create('test');
    return (await server.inject({ url: path, headers: { token: key } })).statusCode;
}

t.test('token-auth', async (t) => {
    const { server, key } = await runPage('token-auth/page.js', { with: ANY_PORT, gives: ['server', 'key'] });
    t.teardown(() => server.stop());
    t.match(await server.inject({ url: '/reports', headers: { token: key } }), { statusCode: 200, payload: 'Hello nightly job' });

    const both = await runPage('token-auth/partners.js', { with: ANY_PORT, gives: ['server', 'key', 'partnerKey'] });
    t.teardown(() => both.server.stop());
    both.server.route({ method: 'GET', path: '/reports', options: { auth: 'token' }, handler: () => 'reports' });
    for (const [url, token, statusCode] of [
        ['/partners/rest_api/v2/workspaces', both.partnerKey, 200],
        ['/partners/rest_api/v2/workspaces', both.key, 403],
        ['/reports', both.partnerKey, 403],
        ['/reports', both.key, 200],
    ]) {
        t.match(await both.server.inject({ url, headers: { token } }), { statusCode }, url);
    }
});

t.test('rest-api-v2', async (t) => {
    await pool.query(`create table site (id serial, name text, created_at timestamptz default now());
        create table machine (id serial, site_id int, ip inet, label text, created_at timestamptz default now());
        insert into site (name) values ('Oslo'); insert into machine (site_id, ip, label) values (1, '192.0.2.7', 'web');
        create table campaign (id serial, workspace_id int, name text, started_at timestamptz, ended_at timestamptz);
        insert into campaign (workspace_id, name, started_at) values (1, 'spring', now())`);
    const gives = ['server', 'key', 'license', 'store', 'text'];
    const page = await runPage('rest-api-v2/page.js', { given: { pool }, with: ANY_PORT, gives });
    t.teardown(() => page.server.stop());
    t.match(await page.server.inject({ url: '/rest_api/v2/workspaces', headers: { token: page.key } }), { statusCode: 200 });
    t.match(page.text, /\S/);
    t.equal(await page.license.valid(), false, 'the file is not there yet');

    const { campaigns } = await runPage('rest-api-v2/campaigns.js', { given: { pool }, gives: ['campaigns'] });
    const server = await host(t);
    await server.register({ plugin: restApiV2, options: { store: page.store, license: alwaysLicensed(), resources: [campaigns] } });
    const { key } = await server.plugins['token-auth'].create('test');
    const rows = async (path: string) => JSON.parse((await server.inject({ url: `/rest_api/v2${path}`, headers: { token: key } })).payload);
    t.match(await rows('/workspaces/1/hosts'), [{ address: '192.0.2.7', name: 'web' }]);
    t.match(await rows('/workspaces/1/campaigns'), [{ id: 1, name: 'spring', ended_at: null }]);
});

t.test('rest-api-v2 shows tables of somebody else in ten lines', (t) => {
    const page = readFileSync('docs/rest-api-v2.md', 'utf8');
    const [, block = ''] = /^## Tables of your own$.*?^```js\n(.*?)^```$/ms.exec(page) ?? [];
    const lines = block.split('\n').filter((line) => line.trim() !== '');
    t.match(block, 'readOnlyInventory({');
    t.ok(lines.length <= 10, `${lines.length} lines`);
    t.end();
});

t.test('mcp, metasploit-data', async (t) => {
    for (const [name, port, path, status] of [
        ['mcp/page.js', ANY_PORT, '/mcp', 405],
        ['metasploit-data/page.js', { 'port: 5443': 'port: 0' }, '/api/v1/msf/version', 200],
    ] as const) {
        const { server } = await runPage(name, { with: port, gives: ['server'] });
        t.teardown(() => server.stop());
        t.equal(await statusOf(server, path), status, name);
        if (name === 'metasploit-data/page.js') {
            const { create } = server.plugins['token-auth'];
            const { key } = await create('loots', { scopes: ['inventory:read', 'secrets:read'] });
            const { payload } = await server.inject({ url: '/captured/api/v1/loots', headers: { token: key } });
            t.match(JSON.parse(payload), { data: [{ id: 1, ltype: 'linux.hashes' }] });
            const { key: other } = await create('hosts');
            t.equal((await server.inject({ url: '/captured/api/v1/loots', headers: { token: other } })).statusCode, 403);
        }
    }
});

t.test('https-record-schema', async (t) => {
    for (const [name, hasRecords] of [
        ['page', false],
        ['storing', true],
    ] as const) {
        const server = await host(t);
        await runPage(`https-record-schema/${name}.js`, { given: { pool, server } });
        t.equal(await statusOf(server, '/https-record-schema'), 200);
        const paths = server.table().map(({ path }) => path);
        t.equal(paths.includes('/https-record-schema/records'), hasRecords);
    }
});

t.test('errors, filters, exposing, formats', async (t) => {
    const schema = Joi.object({ timestamp: Joi.date(), actors: Joi.object({ assets: Joi.array().items({ hostname: Joi.string() }) }) });
    const server = await sendingHost(t, { kinds: [{ name: 'scan.finished', schema }] });
    const { exporters } = server.plugins['webhook-exporter'];
    const { isTaken } = await runPage('errors/page.js', { given: { server, exporters }, gives: ['isTaken'] });
    t.strictSame([isTaken(new ScanwireError('CONFLICT', 'Taken')), isTaken(new Error('Taken'))], [true, false]);
    const refused = await server.inject({ method: 'POST', url: '/receivers', payload: { url: 'ftp://192.0.2.1' } });
    t.match([refused.statusCode, JSON.parse(refused.payload)], [400, { code: 'INVALID_INPUT', field: 'url' }]);

    await runPage('filters/page.js', { given: { exporters } });
    t.match(await exporters.list(), [{ kinds: ['idr_*', 'scan.finished'], filter: { value: 'db' } }]);
    await runPage('exposing/page.js', { given: { server } });
    t.equal(server.listener.maxRequestsPerSocket, 0);

    const { formats } = await runPage('formats/page.js', { gives: ['formats'] });
    const formatted = (await sendingHost(t, { formats })).plugins['webhook-exporter'].exporters;
    const { exporter } = await formatted.create({ url: 'https://hooks.example.com/line', format: 'line' });
    const body = {
        timestamp: new Date(),
        title: 'Weak cipher',
        link: 'https://a.example',
        investigationId: randomUUID(),
        investigationRrn: 'rrn:acme:finding:7',
    };
    const actors = { users: [], assets: [] };
    t.match((await formatted.preview(exporter.id, 'idr_investigation_created', { ...body, actors })).body, / idr_\w+ .* Weak cipher$/);
});

t.test('metrics', async (t) => {
    const server = await sendingHost(t);
    await runPage('metrics/page.js', { given: { server } });
    t.equal(await statusOf(server, '/metrics'), 403, 'a key needs the scope for it');
    const { text, type } = await runPage('metrics/sender.js', { given: parts(), gives: ['text', 'type'] });
    t.match([text, type], [/^# HELP scanwire_/m, /^text\/plain/]);
});

t.test('observing', async (t) => {
    const alerts: string[] = [];
    const pinoOptions: object[] = [];
    const hapiPino = { name: 'hapi-pino', register: (_: unknown, options: object) => void pinoOptions.push(options) };
    const server = await host(t);
    const given = { alertSomebody: (text: string) => alerts.push(text), count: () => {}, hapiPino, server, webhookExporter, ...parts() };
    // Another's product, which nothing else needs.
    await installFor('observing/page.js', '@bull-board/api@9.10.1', '@bull-board/hapi@9.10.1');
    const queues = { 'redis://127.0.0.1:6379': required('REDIS_URL') };
    const { jobs } = await runPage('observing/page.js', { given, with: queues, gives: ['jobs'] });
    t.teardown(() => jobs.close());
    t.match(pinoOptions, [{ redact: ['req.headers.token'] }]);
    const { payload } = await server.inject('/queues/api/queues');
    t.match(JSON.parse(payload).queues, [{ name: 'scanwire-default', readOnlyMode: true }]);
});

t.test('running', async (t) => {
    const server = await sendingHost(t);
    const { next } = await runPage('running/page.js', { given: { server } });
    t.equal(next, undefined);
});

t.test('postgres, embedded-database', async (t) => {
    const page = await runPage('postgres/page.js', { gives: ['pool', 'inventory', 'apiKeys', 'records'] });
    t.equal((await page.inventory.workspaces.get([], 1))?.name, 'default');
    await page.pool.end();

    const folder = t.testdir({});
    const embedded = await runPage('embedded-database/page.js', {
        with: { './scanwire-data': join(folder, 'data') },
        gives: ['database', 'copy'],
    });
    await t.rejects(embedded.database.query('select 1'), 'it has ended');
    await t.rejects(embedded.copy(embedded.database, join(folder, 'none.tar')), { code: 'UNAVAILABLE' });
    t.notOk(existsSync(join(folder, 'none.tar')), 'nothing is left of a copy that is none');
    const again = await openEmbeddedDatabase({ folder: join(folder, 'data') });
    await embedded.copy(again, join(folder, 'database.tar')).finally(() => again.end());
    t.ok(statSync(join(folder, 'database.tar')).size > 1_000_000);
});

t.test('memory, queues', async (t) => {
    const { inventory } = await runPage('memory/page.js', { gives: ['inventory'] });
    t.match(await inventory.hosts.get([1], 1), { address: '192.0.2.7', note_count: 1 });

    process.env.REDIS_URL = required('REDIS_URL');
    const { onRedis, onPostgres } = await runPage('queues/page.js', { given: { pool }, gives: ['onRedis', 'onPostgres'] });
    for (const queue of [onRedis, onPostgres]) {
        await t.rejects(queue.add([]), 'it is closed');
    }
});

t.test('scan-database', async (t) => {
    const database = await scanDatabase(2);
    t.teardown(() => database.stop());
    const path = join(t.testdir({ url: `${database.url}\n` }), 'url');
    const server = await host(t);
    const given = { license: alwaysLicensed(), server };
    const { close } = await runPage('scan-database/page.js', { given, with: { '/etc/scanwire/scan-database': path }, gives: ['close'] });
    t.equal(await statusOf(server, '/rest_api/v2/workspaces/1/hosts'), 200);
    await close();
});

t.test('webhook-exporter', async (t) => {
    const folder = t.testdir({});
    const pair = await certificate();
    for (const [name, pem] of Object.entries({ 'company-root.pem': pair.cert, 'sender.pem': pair.cert, 'sender.key': pair.key })) {
        writeFileSync(join(folder, name), pem);
    }
    process.env.REDIS_URL = required('REDIS_URL');
    await pool.query('create table findings (id serial primary key, title text not null)');
    const findings = pgTable('findings', { id: serial().primaryKey(), title: text().notNull() });
    const [byKnex, byPostgres] = [knex({ client: 'pg', connection: url }), postgres(url, { max: 2 })];
    t.teardown(() => Promise.all([byKnex.destroy(), byPostgres.end()]));
    const server = new HapiServer({ debug: false });
    const others = {
        knex: byKnex,
        postgres: byPostgres,
        kysely: new Kysely({ dialect: new PostgresDialect({ pool }) }),
        drizzle: drizzle(pool),
    };
    const files = Object.fromEntries(
        ['company-root.pem', 'sender.pem', 'sender.key'].map((name) => [`'${name}'`, `'${join(folder, name)}'`]),
    );
    const given = { findings, pool, server, ...others };
    const page = await runPage('webhook-exporter/server.js', {
        given,
        with: files,
        gives: ['options', 'kinds', 'kindsByZod', 'exporters'],
    });
    t.teardown(() => server.stop());
    const { rows } = await pool.query('select count(*)::int as count from findings');
    t.strictSame(rows, [{ count: 6 }]);
    t.match(await page.exporters.list(), [{ ordered: true, authentication: ['ca', 'clientCertificate'] }]);
    await t.resolves(sendingHost(t, { ...page.options, kinds: [...page.kinds] }));
    await t.resolves(sendingHost(t, { kinds: page.kindsByZod }));

    const { worker, queue } = await runPage('webhook-exporter/worker.js', {
        given: { onOutdated: () => {}, pool },
        gives: ['worker', 'queue'],
    });
    await worker.close();
    await queue.close();
});

/** What the other files here and those of `test/interop/` run. */
const ELSEWHERE = /^(?:README|admin-console|embedding|express|fastify|node-http|receivers|records)\/|\.test\.js$/;

t.test('no page is left out', (t) => {
    t.strictSame(
        [...pastedPages().keys()].filter((name) => !ELSEWHERE.test(name) && !ranPages.has(name)),
        [],
    );
    t.end();
});
